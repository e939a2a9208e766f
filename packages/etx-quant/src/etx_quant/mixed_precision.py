# SPDX-License-Identifier: BSD-3-Clause
"""Which operators stay in float: each is measured by itself, then the worst are kept."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.fx import GraphModule

from etx_quant.annotate import KEY
from etx_quant.checks import Batch
from etx_quant.errors import QuantizationError, QuantizationWarning
from etx_quant.progress import Progress
from etx_quant.report import decibels, errors
from etx_quant.simulation import Simulation, Unit

__all__ = ["Goal", "Sensitivity", "choose", "keep_units", "measure"]


@dataclass(frozen=True)
class Goal:
    """What the quantized model is to reach: an SQNR in decibels, or an accuracy of the user's."""

    sqnr: float | None = None
    accuracy: Callable[[Callable[..., Any]], float] | None = None
    least_accuracy: float | None = None

    def __post_init__(self) -> None:
        if (self.accuracy is None) != (self.least_accuracy is None):
            raise QuantizationError("accuracy and least_accuracy go together; give both")
        if self.accuracy is not None and self.sqnr is not None:
            raise QuantizationError("give target_sqnr, or accuracy with least_accuracy, not both")
        for name, value in (("target_sqnr", self.sqnr), ("least_accuracy", self.least_accuracy)):
            if value is not None:
                _number(value, name)

    @property
    def least(self) -> float:
        """Return what must be reached."""
        found = self.least_accuracy if self.accuracy is not None else self.sqnr
        assert found is not None
        return found

    @property
    def is_set(self) -> bool:
        """Tell whether there is something to reach."""
        return self.sqnr is not None or self.accuracy is not None


def _number(value: Any, name: str) -> float:
    """Return ``value`` as a number; refuse what is none."""
    try:
        number = float(value) if not isinstance(value, str) else math.nan
    except (TypeError, ValueError, RuntimeError):
        number = math.nan
    if math.isnan(number):
        raise QuantizationError(f"{name} is {value!r}; expected a number")
    return number


@dataclass
class Sensitivity:
    """The SQNR of the model's outputs where only one unit is quantized, the worst unit first."""

    alone: dict[Unit, float]
    kept: list[Unit] = field(default_factory=list)

    @property
    def order(self) -> list[Unit]:
        """Return the units, those that lose most first."""
        return sorted(self.alone, key=lambda unit: self.alone[unit])


def measure(simulation: Simulation, batches: Sequence[Batch], progress: Progress) -> Sensitivity:
    """Quantize each unit by itself and compare the outputs with float."""
    references = simulation.stream(()).results(batches)
    alone = {}
    for i, unit in enumerate(simulation.units):
        progress(f"measuring {unit.name}", i, len(simulation.units))
        alone[unit] = _sqnr(simulation, batches, references, [unit])
    return Sensitivity(alone)


def choose(
    simulation: Simulation,
    sensitivity: Sensitivity,
    batches: Sequence[Batch],
    goal: Goal,
    progress: Progress,
) -> None:
    """Keep as few of the worst units in float as reach the goal, by bisection of their number."""
    references = simulation.stream(()).results(batches)
    order = sensitivity.order
    steps = max(1, len(order)).bit_length() + 1
    low, high = 0, len(order)
    found: dict[int, float] = {}

    def reached(number: int) -> bool:
        progress(f"keeping {number} in float", min(len(found), steps - 1), steps)
        quantized = order[number:]
        if goal.accuracy is None:
            found[number] = _sqnr(simulation, batches, references, quantized)
            return found[number] >= goal.least
        stream = simulation.stream(simulation.active(quantized))
        result = goal.accuracy(lambda *a, **k: stream.call(Batch(a, k)))
        found[number] = _number(result, "what accuracy returned")
        return found[number] >= goal.least

    if not reached(0):
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if reached(middle) else (middle, high)
        if high == len(order):
            if not order or not reached(high):
                raise QuantizationError(_unreachable(goal))
            warnings.warn(_all_float(goal, order, found), QuantizationWarning, stacklevel=4)
        sensitivity.kept = order[:high]


def _unreachable(goal: Goal) -> str:
    if goal.accuracy is None:
        return f"target_sqnr={goal.sqnr} is not reached with everything in float"
    return (
        f"least_accuracy={goal.least_accuracy} is not reached with everything in float: is it "
        "above the accuracy of the model as it was given?"
    )


def _all_float(goal: Goal, order: Sequence[Unit], found: Mapping[int, float]) -> str:
    """Say what was reached with all quantized, and with only the least sensitive."""
    name, unit = ("target_sqnr", " dB") if goal.accuracy is None else ("least_accuracy", "")
    return (
        f"{name}={goal.least:g} leaves every layer in float: with all {len(order)} quantized "
        f"{found[0]:.4g}{unit} are reached, with only {order[-1].name!r}, which loses least, "
        f"{found[len(order) - 1]:.4g}{unit}; ask for less, or use the model as it is"
    )


def _sqnr(
    simulation: Simulation,
    batches: Sequence[Batch],
    references: Sequence[Sequence[Any]],
    quantized: Sequence[Unit],
) -> float:
    found = simulation.stream(simulation.active(quantized)).results(batches)
    signal = noise = 0.0
    for expected, actual in zip(references, found, strict=True):
        for x, y in zip(expected, actual, strict=True):
            if isinstance(x, Tensor) and x.is_floating_point():
                power, lost, _ = errors(x, y)
                signal, noise = signal + power, noise + lost
    return decibels(signal, noise)


def keep_units(prepared: GraphModule, simulation: Simulation, units: Sequence[Unit]) -> None:
    """Take out of a prepared graph the observers that only these units need."""
    if not units:
        return
    stay = simulation.active([unit for unit in simulation.units if unit not in units])
    for unit in units:
        for node in (unit.node, unit.last):
            node.meta.pop(KEY, None)
    for node in simulation.observers:
        if node not in stay:
            (source,) = node.args
            node.replace_all_uses_with(source)  # type: ignore[arg-type]
            prepared.graph.erase_node(node)
    prepared.delete_all_unused_submodules()
    prepared.recompile()
