# SPDX-License-Identifier: BSD-3-Clause
"""Graphs of 1 to 12 operators, drawn from all that the table of kernels is called for.

A step is a call that PyTorch's samples make, with values of the graph in the place of its tensors
wherever eager takes them. What is new is an input, some of them constants, some channels-last.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import torch
from recorded_calls import HIGHEST, LARGEST, Call, recorded
from torch import Tensor, nn
from torch.utils._pytree import tree_unflatten

STEPS = 12
SIZES = ((), (1,), (0,), (3,), (2, 3), (0, 3), (1, 3), (2, 1, 3), (2, 3, 4, 2))
FIXED = (
    *("backward", "batch_norm", "per_token", "index_put", "embedding", "as_strided"),
    *("_fft", "_aa", "shift", "roi", "nms", "pdist", "cdist"),
)
"""Names of operators that trust their arguments: only values of the same size, or new ones.

`native_group_norm_backward` of eager is wrong where its tensors' dim orders differ.
"""
TIED = ("topk", "sort", "argsort")


@dataclass(frozen=True)
class Place:
    """Where a tensor of a call comes from: the number of a value."""

    number: int


@dataclass
class Step:
    """An operator, its arguments' leaves with `Place`s, and which results other steps may read."""

    call: Call
    leaves: tuple[Any, ...]

    def results(self, pool: list[Tensor]) -> list[Any]:
        leaves = [pool[x.number] if isinstance(x, Place) else x for x in self.leaves]
        args, kwargs = tree_unflatten(leaves, self.call.spec)
        found = self.call.target(*args, **kwargs)
        return [found] if isinstance(found, Tensor) else [*found]

    @property
    def places(self) -> list[int]:
        return [x.number for x in self.leaves if isinstance(x, Place)]

    @property
    def is_open(self) -> bool:
        """Whether the numbers of its results are not determined."""
        target = self.call.target
        return torch.Tag.nondeterministic_seeded in target.tags or "empty" in target._schema.name

    def is_compared(self, place: int) -> bool:
        """Whether a result has one right value: not the indices among equal numbers."""
        name = self.call.target._schema.name.partition("::")[2]
        return not self.is_open and not (place and name in TIED)

    def binds(self, place: int) -> bool:
        """Whether eager's numbers are due: of bytes torch.export interpolates in float32, where
        eager has weights of 16 bits."""
        is_bytes = self.call.dtype == torch.uint8
        is_rounded = is_bytes and self.call.target._schema.name == "aten::upsample_bilinear2d"
        return self.is_compared(place) and not is_rounded


class TableGraph(nn.Module):
    """Steps over a list of values that begins with the inputs and the constants."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: list[Tensor] = []
        self.constants: dict[int, str] = {}
        self.steps: list[Step] = []
        self.returned: list[int] = []

    def values(self, inputs: tuple[Tensor, ...]) -> list[Tensor]:
        """Return all values: new ones first, then each step's."""
        given = iter(inputs)
        count = len(inputs) + len(self.constants)
        pool = [
            getattr(self, self.constants[i]) if i in self.constants else next(given)
            for i in range(count)
        ]
        for step in self.steps:
            pool += step.results(pool)
        return pool

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        pool = self.values(inputs)
        return tuple(pool[place] for place in self.returned)

    def compared(self) -> list[bool]:
        """Return, for each value returned, whether eager's numbers bind."""
        first = len(self.inputs) + len(self.constants)
        kinds = [True] * first
        for step, count in zip(self.steps, self.counts, strict=True):
            kinds += [step.binds(i) for i in range(count)]
        return [kinds[place] for place in self.returned]

    def described(self) -> str:
        lines = [f"{i}: {x.dtype} {list(x.shape)}" for i, x in enumerate(self.new)]
        number = len(self.new)
        for step, count in zip(self.steps, self.counts, strict=True):
            lines.append(f"{number}: {step.call.target}{step.leaves}")
            number += count
        return "\n".join([*lines, f"returns {self.returned}; constants {sorted(self.constants)}"])


@dataclass
class Draft:
    """A graph that grows. New values come before steps, so places are numbered at the end."""

    draw: random.Random
    new: list[Tensor] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    pool: list[tuple[str, int, int]] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)
    usable: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def grow(self) -> None:
        """Add a step that eager takes, if a few draws find one."""
        known = sorted(recorded(), key=str)
        held = {self.values[place].dtype for place in self.usable}
        for _ in range(6):
            calls = recorded()[self.draw.choice(known)]
            joined = [call for call in calls if held.intersection(x.dtype for x in call.tensors)]
            if self.added(self.draw.choice(joined or calls)):
                return

    def added(self, call: Call) -> bool:
        leaves, fresh = [], []
        for leaf in self.varied(call):
            if not isinstance(leaf, Tensor):
                leaves.append(leaf)
                continue
            place = self.chosen(call, leaf)
            if place is None:
                place = len(self.values) + len(fresh)
                fresh.append(self.made(call, leaf))
            leaves.append(Place(place))
        step = Step(call, tuple(leaves))
        pool = [*self.values, *fresh]
        try:
            results = step.results([x.clone() for x in pool])
        except (RuntimeError, LookupError, TypeError, ValueError, ArithmeticError, AssertionError):
            return False
        if not all(map(fits, results)) or not is_defined(step, pool, results):
            return False
        if not is_checked(step, pool, results) or not is_of_values(step, pool, results):
            return False
        if "squeeze" in call.target._schema.name and any(map(self.is_sized_by_data, step.places)):
            return False
        for x in fresh:
            self.kept(x, ("new", len(self.new), 0), True)
            self.new.append(x)
        for i, x in enumerate(results):
            self.kept(x, ("step", len(self.steps), i), step.is_compared(i))
        self.steps.append(step)
        self.counts.append(len(results))
        return True

    def is_sized_by_data(self, place: int) -> bool:
        """Whether a size is known at run time only: torch.export takes it not to be 1."""
        kind, number, _ = self.pool[place] if place < len(self.pool) else ("new", 0, 0)
        if kind != "step":
            return False
        step = self.steps[number]
        is_first = torch.Tag.dynamic_output_shape in step.call.target.tags
        return is_first or any(map(self.is_sized_by_data, step.places))

    def kept(self, x: Tensor, where: tuple[str, int, int], is_usable: bool) -> None:
        if is_usable:
            self.usable.append(len(self.values))
        self.pool.append(where)
        self.values.append(x)

    def varied(self, call: Call) -> list[Any]:
        """Return the call's leaves, sometimes with another dimension."""
        leaves = list(call.leaves)
        names = [argument.name for argument in call.target._schema.arguments]
        simple = len(leaves) == len(call.target._schema.arguments)
        if is_trusting(call):
            return leaves
        if simple and "dim" in names and call.tensors and self.draw.random() < 0.4:
            at = names.index("dim")
            rank = max(call.tensors[0].dim(), 1)
            if type(leaves[at]) is int:
                leaves[at] = self.draw.randrange(-rank, rank)
        return leaves

    def chosen(self, call: Call, model: Tensor) -> int | None:
        """Return a value to take for a tensor of the call."""
        if not self.usable or self.draw.random() < 0.2:
            return None
        trusts = is_trusting(call)
        is_index = model.dtype in (torch.int64, torch.int32)
        exact = trusts or (is_index and len(call.tensors) > 1)
        fitting = [
            place
            for place in self.usable
            if self.values[place].dtype == model.dtype
            and (self.values[place].shape == model.shape or not exact)
            and not (trusts and is_index)
        ]
        alike = [place for place in fitting if self.values[place].dim() == model.dim()]
        same = [place for place in fitting if self.values[place].shape == model.shape]
        found = self.draw.choice((fitting, alike, same)) or fitting
        return self.draw.choice(found[-5:]) if found else None

    def made(self, call: Call, model: Tensor) -> Tensor:
        """Return a new value: the sample's, of any size where operators map elements."""
        x = model.clone().contiguous()
        pointwise = torch.Tag.pointwise in call.target.tags
        if pointwise and x.numel() and self.draw.random() < 0.3:
            size = self.draw.choice(SIZES)
            count = torch.Size(size).numel()
            x = x.reshape(-1)[torch.arange(count) % x.numel()].reshape(size).clone()
        if x.dim() == 4 and not is_trusting(call) and self.draw.random() < 0.4:
            x = x.contiguous(memory_format=torch.channels_last)
        return x

    def graph(self) -> TableGraph:
        """Return the graph, which returns all that no step reads, perhaps one of them twice."""
        graph = TableGraph()
        graph.new, graph.counts = self.new, self.counts
        first = len(self.new)
        order: dict[int, int] = {}
        step_values = 0
        for place, (kind, number, _) in enumerate(self.pool):
            if kind == "new":
                order[place] = number
            else:
                order[place] = first + step_values
                step_values += 1
        for step in self.steps:
            leaves = tuple(
                Place(order[x.number]) if isinstance(x, Place) else x for x in step.leaves
            )
            graph.steps.append(Step(step.call, leaves))
        for number, x in enumerate(self.new):
            if self.draw.random() < 0.25:
                graph.constants[number] = f"constant_{number}"
                graph.register_buffer(f"constant_{number}", x)
            else:
                graph.inputs.append(x)
        last = range(first, first + step_values)
        read = {place for step in graph.steps for place in step.places}
        graph.returned = [number for number in last if number not in read]
        for _ in range(self.draw.randint(0, 2)):
            everything = range(first + step_values) if self.draw.random() < 0.2 else last
            graph.returned.append(self.draw.choice(everything))
        return graph


def is_trusting(call: Call) -> bool:
    return any(part in call.target._schema.name for part in FIXED)


def fits(x: Any) -> bool:
    return (
        isinstance(x, Tensor)
        and x.layout == torch.strided
        and x.numel() <= LARGEST
        and x.dim() <= HIGHEST
    )


def is_defined(step: Step, pool: list[Tensor], results: list[Tensor]) -> bool:
    """Whether C++ defines what is computed: no float that an integer dtype cannot hold."""
    read = [pool[place] for place in step.places]
    floats = [x for x in read if x.is_floating_point() or x.is_complex()]
    for result in results:
        if result.dtype.is_floating_point or result.is_complex() or result.dtype == torch.bool:
            continue
        low = float(torch.iinfo(result.dtype).min)
        high = float(min(torch.iinfo(result.dtype).max, 2**31))
        for x in floats:
            numbers = torch.view_as_real(x) if x.is_complex() else x
            numbers = numbers.double()
            if x.numel() and not ((numbers > low - 1) & (numbers < high)).all():
                return False
    return True


def is_checked(step: Step, pool: list[Tensor], results: list[Tensor]) -> bool:
    """Whether eager looks at all that it is given.

    It does not at indices of what has no elements, of which a dropout's mask is float32, nor at
    scales beyond the channels.
    """
    name = step.call.target._schema.name
    if name in ("aten::index", "aten::native_dropout"):
        return all(x.numel() for x in results)
    if "per_channel" in name and "group" not in name:
        names = [spec.name for spec in step.call.target._schema.arguments]
        axis = step.leaves[names.index("axis")]
        return pool[step.places[0]].shape[axis] == pool[step.places[1]].numel()
    return True


def is_of_values(step: Step, pool: list[Tensor], results: list[Tensor]) -> bool:
    """Whether eager's numbers are those of dense arguments, too.

    Its native_group_norm_backward reads a gradient with channels last as if it were dense.
    """
    if step.is_open or "as_strided" in step.call.target._schema.name:
        return True
    if all(pool[place].is_contiguous() for place in step.places):
        return True
    dense = step.results([x.clone(memory_format=torch.contiguous_format) for x in pool])
    return all(
        torch.allclose(x.double(), y.double(), 1e-2, 1e-2, equal_nan=True)
        for i, (x, y) in enumerate(zip(results, dense, strict=True))
        if step.is_compared(i) and not x.is_complex()
    )


def drawn_graph(draw: random.Random, most: int = STEPS) -> TableGraph | None:
    """Return a graph; None where nothing could be drawn."""
    draft = Draft(draw)
    with torch.no_grad():
        torch.manual_seed(0)
        for _ in range(draw.randint(1, most)):
            draft.grow()
        return draft.graph() if draft.steps else None
