# SPDX-License-Identifier: BSD-3-Clause
"""Random small graphs by seed: chained operators of mixed dtypes, views, several results, state.

Each step is tried in eager mode when it is drawn, at every number of rows. A value is `rough` once
rounding may differ; what a small difference would turn over takes only exact values.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim

LARGEST = 600
ROWS = (3, 1, 5)
DTYPES = (torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool)
Function = Callable[..., Any]


@dataclass(frozen=True)
class Kind:
    """Functions with what they take: a letter an operand.

    `f` floating, `i` integer, `b` bool, `n` no bool, `*` any; upper case: exact ones.
    """

    takes: str
    functions: Sequence[Function]
    rounds: bool = False


FITS: dict[str, Callable[[Tensor], bool]] = {
    "f": lambda x: x.is_floating_point(),
    "i": lambda x: not x.is_floating_point() and x.dtype != torch.bool,
    "b": lambda x: x.dtype == torch.bool,
    "n": lambda x: x.dtype != torch.bool,
    "*": lambda x: True,
}


def shifted(x: Tensor) -> Tensor:
    y = x.clone()
    y[..., :1].add_(1)
    return y


def halved(x: Tensor) -> Tensor:
    y = x.clone()
    y.view(-1)[::2] = 0
    return y


def added_to_state(self: nn.Module, x: Tensor) -> Tensor:
    self.total.copy_(self.total * 0.5 + x.sum().clamp(-8, 8))
    self.count.add_(1)
    return self.total.view(-1)


KINDS = (
    Kind("f", (torch.sigmoid, torch.tanh, torch.sin, F.silu, F.gelu, torch.erf), rounds=True),
    Kind(
        "f", (lambda x: x.softmax(-1), lambda x: x.mean(0), lambda x: F.layer_norm(x, x.shape[-1:]))
    ),
    Kind(
        "n", (torch.abs, torch.neg, torch.sign, torch.relu, lambda x: x.clamp(-3, 5), torch.square)
    ),
    Kind("F", (torch.floor, torch.round, lambda x: x > 0.5, lambda x: x.clamp(-9, 9).long())),
    Kind("i", (torch.bitwise_not, lambda x: x % 3, lambda x: x // 2, lambda x: x << 1)),
    Kind("I", (lambda x: x / 4, lambda x: x.to(torch.float16) if x.numel() else x)),
    Kind("*", (torch.logical_not, lambda x: x != 0, lambda x: x.any(-1), lambda x: x.amax(0))),
    Kind("*", (lambda x: x.flip(0), lambda x: x.roll(1, -1), lambda x: x.repeat(2, 1))),
    Kind("*", (lambda x: x.transpose(0, -1), lambda x: x.unsqueeze(1), lambda x: x.squeeze())),
    Kind(
        "*", (lambda x: x.reshape(-1), lambda x: x[..., 1:], lambda x: x[0], lambda x: x[..., ::2])
    ),
    Kind(
        "*",
        (lambda x: x.expand(2, *x.shape), lambda x: x.flatten(0, 1), lambda x: x.movedim(0, -1)),
    ),
    Kind("*", (lambda x: x.chunk(2, -1), lambda x: x.split([1, x.shape[-1] - 1], -1))),
    Kind(
        "*",
        (lambda x: x.unbind(-1), lambda x: (x, x.clone()), lambda x: (x.mT, x.to(torch.float32))),
    ),
    Kind("N", (lambda x: x.max(-1), lambda x: x.sort(-1, stable=True), lambda x: x.cumsum(0))),
    Kind("N", (lambda x: x.argmax(-1), lambda x: x.sum(0), lambda x: x.cummax(-1))),
    Kind("n", (shifted, halved, lambda x: F.pad(x, (1, 2)), lambda x: x.masked_fill(x > 2, 1))),
    Kind("nn", (torch.add, torch.sub, torch.mul, lambda x, y: torch.add(x, y, alpha=2))),
    Kind("**", (torch.logical_and, torch.logical_xor, torch.maximum, torch.mul, torch.add)),
    Kind("NN", (torch.eq, torch.lt, torch.ge, torch.fmod, torch.remainder, torch.minimum)),
    Kind("nn", (lambda x, y: x / (y.abs() + 1), torch.atan2, torch.hypot), rounds=True),
    Kind("ii", (torch.bitwise_and, torch.bitwise_or, lambda x, y: x // y.clamp(1, 5))),
    Kind("ff", (torch.matmul, lambda x, y: F.linear(x, y), torch.outer), rounds=True),
    Kind("**", (lambda x, y: torch.cat([x, y], -1), lambda x, y: torch.stack([x, y]))),
    Kind("B**", (torch.where, lambda m, x, y: torch.where(m.any(), x, y))),
    Kind("*I", (lambda x, i: x.index_select(-1, i.reshape(-1).clamp(0, 1).long()),)),
    Kind("*I", (lambda x, i: x[i.clamp(0, 0).long()], lambda x, i: x.take(i.long() % x.numel()))),
)
STATE = Kind("f", (added_to_state,), rounds=True)


@dataclass(frozen=True)
class Step:
    """A function of values of the pool, and of the graph where it changes its state."""

    function: Function
    places: tuple[int, ...]
    stateful: bool

    def taken(self, graph: nn.Module, pool: Sequence[Tensor]) -> list[Tensor]:
        values = [pool[place] for place in self.places]
        result = self.function(graph, *values) if self.stateful else self.function(*values)
        return [result] if isinstance(result, Tensor) else [*result]


class Graph(nn.Module):
    """Steps over a pool of values, which begins with the inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.returned: list[int] = []
        self.register_buffer("total", torch.zeros(2, 2))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        pool = [*inputs]
        for step in self.steps:
            pool += step.taken(self, pool)
        return tuple(pool[place] for place in self.returned)


class Draft:
    """A graph that grows by what eager mode takes, at every number of rows."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.graph = Graph()
        self.dynamic = draw.random() < 0.4
        self.calls = [self.inputs(rows) for rows in (ROWS if self.dynamic else ROWS[:1])]
        self.pools = [[*call] for call in self.calls]
        self.rough = [False] * len(self.calls[0])

    def inputs(self, rows: int) -> tuple[Tensor, ...]:
        draw = random.Random(f"{rows} {self.draw.random() if rows == ROWS[0] else 0}")
        wide = [(rows, 4), (4,), (rows, 4), (rows, 2, 4)]
        if rows == ROWS[0]:
            self.dtypes = [draw.choice(DTYPES) for _ in range(2)] + [torch.float32, torch.int64]
        return tuple(
            (torch.tensor([draw.randint(-12, 12) for _ in range(torch.Size(size).numel())]) / 4)
            .reshape(size)
            .to(torch.int16 if dtype == torch.uint8 else dtype)
            .to(dtype)
            for size, dtype in zip(wide, self.dtypes, strict=True)
        )

    def grow(self) -> None:
        """Add a step that eager takes, if a few draws find one."""
        for _ in range(8):
            kind = STATE if self.draw.random() < 0.06 else self.draw.choice(KINDS)
            places = [self.place(letter) for letter in kind.takes]
            if None in places:
                continue
            step = Step(self.draw.choice(kind.functions), tuple(places), kind is STATE)
            if (results := self.tried(step)) is not None:
                rough = kind.rounds or any(self.rough[place] for place in places)
                halves = any(x.dtype == torch.float16 for x in results[0])
                self.graph.steps.append(step)
                for pool, found in zip(self.pools, results, strict=True):
                    pool += found
                self.rough += [rough or halves] * len(results[0])
                return

    def place(self, letter: str) -> Any:
        fits = FITS[letter.lower()]
        found = [
            place
            for place, value in enumerate(self.pools[0])
            if fits(value) and not (letter.isupper() and self.rough[place])
        ]
        return self.draw.choice(found[-6:] + found[:2]) if found else None

    def tried(self, step: Step) -> list[list[Tensor]] | None:
        """Return what a step gives at each number of rows; None where eager refuses."""
        try:
            results = [step.taken(copy.deepcopy(self.graph), pool) for pool in self.pools]
        except (RuntimeError, IndexError, TypeError, NotImplementedError):
            return None
        small = all(x.numel() <= LARGEST and x.dim() <= 5 for each in results for x in each)
        alike = len({len(result) for result in results}) == 1
        usable = small and alike and all(map(usual, zip(*results, strict=True)))
        return results if usable else None


def usual(values: Sequence[Tensor]) -> bool:
    """Numbers that both sides can compare: finite, of one rank and dtype, in any case of rows."""
    finite = all(
        x.isfinite().all() and x.abs().max() < 1e4
        for x in values
        if x.numel() and x.dtype != torch.bool
    )
    return finite and len({(x.dim(), x.dtype) for x in values}) == 1


def seeded_graph(seed: str) -> tuple[Graph, list[tuple[Tensor, ...]], Any]:
    """Return a graph, calls of it, and which of its sizes change from call to call."""
    draw = random.Random(seed)
    with torch.no_grad():
        draft = Draft(draw)
        for _ in range(draw.randint(3, 9)):
            draft.grow()
    last = range(len(draft.calls[0]), len(draft.pools[0]))
    draft.graph.returned = draw.sample(last, min(len(last), draw.randint(1, 3)))
    rows = {0: Dim("rows", min=1, max=6)}
    shapes = (rows, None, rows, rows) if draft.dynamic else None
    return draft.graph, draft.calls, (shapes,) if shapes else None
