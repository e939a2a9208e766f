# SPDX-License-Identifier: BSD-3-Clause
"""Two programs with the same inputs, value by value.

Values are paired by the name that the exported model has for them; those without a name, and those
of a model that was quantized otherwise, by module, line and shape. Integers of two programs whose
types differ are compared after the straight line that fits best, since scales are not in a file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from etx_schema import EtxError
from torch import Tensor

from etx_devtools.compare.arrays import as_tensor, distance_of, dtype_text
from etx_devtools.compare.checks import Check, Comparison
from etx_devtools.compare.metrics import Distance
from etx_devtools.compare.record import Recording
from etx_devtools.compare.sides import Side, SideValue
from etx_devtools.compare.tolerance import tolerance

__all__ = ["Pair", "output_distance"]

GROWTH = 16.0
SIMILAR = 0.9
NEAREST = 12


class Pair:
    """One method of two loaded programs; buffers keep their values from call to call."""

    def __init__(self, first: Side, second: Side, method: str) -> None:
        self.first, self.second, self.method = first, second, method
        if first.kinds != second.kinds:
            shown = " and ".join("(" + ", ".join(s.kinds) + ")" for s in self._sides())
            raise EtxError(
                f"{method}: the programs take other inputs: {shown}; give two files of one model"
            )

    def _sides(self) -> tuple[Side, Side]:
        return self.first, self.second

    def call(self, inputs: Sequence[Any]) -> Comparison:
        """Run both; compare every value of the first with that of the second."""
        runs = [side.run(inputs) for side in self._sides()]
        others = _Others(self.second, runs[1], self.first.names)
        unpaired: list[int] = []
        checks: list[Check] = []
        errors: dict[int, float] = {}
        for step in runs[0].steps:
            arrived = max((errors.get(s, 0.0) for s in self._reads(step.instruction)), default=0.0)
            for value in self.first.values(step):
                check = self._check(value, others.take(value), arrived)
                checks.append(check)
                if check.made is None:
                    unpaired.append(check.instruction)
                else:
                    check.suspects = tuple(unpaired) if check.wrong else ()
                    unpaired = []
                errors[value.slot] = _share(check.made, value.plain) if check.made else arrived
            self.first.after(step)
            self._follow_view(step.instruction, errors)
        missing = self.first.missing({step.instruction for step in runs[0].steps})
        outputs = [
            output_distance(a, b) for a, b in zip(runs[0].outputs, runs[1].outputs, strict=False)
        ]
        return Comparison(self.method, checks, outputs, self._state(), None, missing)

    def _reads(self, number: int) -> Sequence[int]:
        effect = self.first.effects[number]
        return (*effect.reads, *effect.updates)

    def _follow_view(self, number: int, errors: dict[int, float]) -> None:
        alias = self.first.effects[number].alias
        if alias is not None and alias[1] in errors:
            errors[alias[0]] = errors[alias[1]]

    def _check(
        self, value: SideValue, other: tuple[SideValue, bool] | None, arrived: float
    ) -> Check:
        number, plain = value.number, value.plain
        effect = self.first.effects[number]
        module, source = value.place
        check = Check(number, effect.op, value.slot, module, source, value.name)
        check.dtype, check.shape = dtype_text(plain.dtype), tuple(plain.shape)
        if other is None:
            check.reason = "the other program has no value of this name, or place and shape"
            return check
        right, is_same = other
        expected = right.plain if is_same else _fitted(right.plain, plain)
        check.by, check.arrived = "program", distance_of(plain, expected)
        check.made = check.arrived
        check.cause = f"compared with instruction {right.number} of the other"
        is_float = plain.dtype.is_floating_point and right.plain.dtype.is_floating_point
        terms = max(self.first.terms(number), self.second.terms(right.number))
        rounding = tolerance(expected, plain.dtype, terms) if is_float else 1.0
        size = _largest(expected)
        if not is_same:
            rounding = size
        check.allowed = rounding + GROWTH * arrived * size
        if check.wrong:
            check.cause = self._cause(value, right)
        return check

    def _cause(self, value: SideValue, right: SideValue) -> str:
        at = f"instruction {right.number} of the other program"
        found = self.first.kernel_error(value)
        if found is None:
            return f"it departs from {at}"
        if found:
            return f"its kernel computes something else than torch's operator; compare {at}"
        return (
            "its kernel is right on what it read: weights, arguments or operator differ from "
            f"those of {at}, or that one's kernel is wrong"
        )

    def _state(self) -> dict[str, Distance]:
        first, second = (side.buffers() for side in self._sides())
        return {n: distance_of(first[n], second[n]) for n in first if n in second}


class _Others:
    """The values of the second program, each given to one of the first."""

    def __init__(self, side: Side, recording: Recording, known: Collection[str]) -> None:
        self.known = known
        self.named: dict[str, list[SideValue]] = {}
        self.placed: list[SideValue] = []
        for step in recording.steps:
            for value in side.values(step):
                self.placed.append(value)
                if value.name:
                    self.named.setdefault(value.name, []).append(value)
            side.after(step)
        self.next = 0

    def take(self, value: SideValue) -> tuple[SideValue, bool] | None:
        """Return the other's value, and whether it means the same numbers."""
        same = self.named.get(value.name, [])
        if same and same[0].plain.shape == value.plain.shape:
            found = same.pop(0)
            self.next = max(self.next, self.placed.index(found))
            return found, found.plain.dtype == value.plain.dtype
        if value.name and same:
            return same.pop(0), True
        alike = [
            (place, other)
            for place, other in enumerate(self.placed[self.next :], self.next)
            if other.plain.shape == value.plain.shape and _may_be(value, other)
        ][:NEAREST]
        fits = [(_similar(value.plain, o.plain), -place, o) for place, o in alike]
        best = max(fits, key=lambda item: item[:2], default=None)
        if best is None or best[0] < SIMILAR:
            return self._instead(value)
        self.next = -best[1]
        return best[2], best[2].plain.dtype == value.plain.dtype and not value.name

    def _instead(self, value: SideValue) -> tuple[SideValue, bool] | None:
        """Return what the other computes in the same module where this is another operator."""
        for place, other in enumerate(self.placed[self.next :], self.next):
            is_alike = (
                other.plain.shape == value.plain.shape and other.plain.dtype == value.plain.dtype
            )
            if is_alike and other.place[0] == value.place[0] and other.name not in self.known:
                self.next = place
                return other, True
        return None


def _may_be(value: SideValue, other: SideValue) -> bool:
    """Whether places say nothing else than that both come of one operator of the model."""
    return not (value.place[1] and other.place[1]) or value.place[1] == other.place[1]


def _similar(a: Tensor, b: Tensor) -> float:
    x, y = (t.double().flatten() for t in (a, b))
    if not x.numel() or a.is_complex() or b.is_complex():
        return 0.0
    x, y = x - x.mean(), y - y.mean()
    size = float(x.norm() * y.norm())
    return float(x @ y) / size if size else float(torch.equal(x, y))


def _fitted(other: Tensor, like: Tensor) -> Tensor:
    """Return the straight line of `other` that is nearest to `like`, in its type."""
    x, y = other.double().flatten(), like.double().flatten()
    centred = x - x.mean()
    power = float(centred @ centred)
    slope = float(centred @ (y - y.mean())) / power if power else 0.0
    line = (other.double() - x.mean()) * slope + y.mean()
    return line if like.dtype.is_floating_point else line.float()


def _largest(tensor: Tensor) -> float:
    if not tensor.numel() or tensor.dtype == torch.bool:
        return 1.0
    return float(tensor.abs().double().nan_to_num(0.0, 0.0, 0.0).max())


def _share(far: Distance, plain: Tensor) -> float:
    size = _largest(plain)
    return far.max_abs / size if size else far.max_abs


def output_distance(got: Any, expected: Any) -> Distance | None:
    """Return how far one output is from another; None without two tensors."""
    both = as_tensor(got), as_tensor(expected)
    return distance_of(*both) if all(isinstance(x, Tensor) for x in both) else None
