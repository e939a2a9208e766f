# SPDX-License-Identifier: BSD-3-Clause
"""Random programs as Python text: branches, loops, state and a batch of run-time size.

Exported, their control flow is torch's operators; called in eager mode, it is plain Python's, so
that the reference does not depend on those operators. Needs only torch, as flows.py does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import torch
from flows import Program
from torch import Tensor, nn
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

Draw = Callable[[int, int], int]

EXPRESSIONS = {
    "vector": (
        "{vector}.relu()",
        "-{vector}",
        "{vector}.tanh()",
        "{vector} * 0.5 + 1",
        "{vector}.flip(0)",
        "{vector}.view(2, 2).t().reshape(4)",
        "{vector}.softmax(0)",
        "torch.cat([{vector}[2:], {vector}[:2]])",
        "{vector}.cumsum(0).tanh()",
        "self.layer({vector}).tanh()",
        "self.weight * {vector}.clamp(-2, 2)",
        "(self.weight * 2 + self.offset).sin() + {vector}",
        "{vector}[1:2].expand(4) + {vector}.sigmoid()",
        "{vector} + {vector}",
        "{vector} - {vector}",
        "({vector} * {vector}).clamp(-3, 3)",
        "torch.maximum({vector}, {vector})",
        "torch.where({vector} > 0.31, {vector}, {vector})",
        "{vector} + {number}",
        "{integers}.to(torch.float32) * 0.1",
        "{batch}.mean(0)",
        "{batch}.amax(0)",
        "{batch}[0] + 0.5",
        "torch.full((4,), 0.25)",
        "{vector}.index_select(0, {integers}.clamp(0, 3))",
    ),
    "batch": (
        "{batch}.relu()",
        "{batch}.tanh()",
        "{batch} + {vector}",
        "({batch} * {vector}).clamp(-3, 3)",
        "{batch} - {batch}",
        "{batch}.softmax(-1)",
        "self.layer({batch}).tanh()",
        "({batch} @ self.square).tanh()",
        "{batch} - {batch}.mean(0)",
        "{batch}.flip(0)",
        "torch.cat([{batch}, {batch}])[: {batch}.shape[0]]",
        "torch.cat([{batch}[:, 2:], {batch}[:, :2]], 1)",
        "{batch} + {column}.unsqueeze(1)",
        "{batch} * ({batch}.shape[0] * 0.1)",
        "{batch}.reshape(-1, 2, 2).transpose(1, 2).reshape(-1, 4)",
    ),
    "number": (
        "{vector}.sum()",
        "{vector}.mean()",
        "{vector}.amax()",
        "{number} * 0.5 + 1",
        "{number} - {number}",
        "{number}.tanh()",
        "{batch}.mean()",
        "{integers}.sum().to(torch.float32) * 0.01",
        "({number} > 0.3).to(torch.float32)",
        "{vector}[1] + 0.5",
        "{column}.amax()",
    ),
    "integers": (
        "{integers} + 1",
        "({integers} * 3) % 7",
        "{integers}.clamp(0, 5)",
        "torch.minimum({integers}, {integers})",
        "{integers} + self.count.clamp(0, 9)",
        "{integers}.flip(0)",
    ),
    "column": (
        "{batch}.sum(1)",
        "{column}.tanh()",
        "{column} * {number}",
        "{column} + {column}",
    ),
}
CONDITIONS = (
    "{number} > 0.31",
    "{vector}.sum() < 0.77",
    "{integers}.sum() > 9",
    "({vector} > 0.21).any()",
    "{batch}.shape[0] > 2",
)
LIMITS = (
    "2",
    "({number} * 2.7 + 1.13).clamp(0, 3).to(torch.int64)",
    "{integers}[1].clamp(0, 3)",
    "{integers}.sum() % 4",
)
STACKED = {"vector": "batch", "number": "column"}
STATE = (
    "self.total.copy_(self.total * 0.5 + {vector})",
    "self.total.add_({number}.tanh())",
    "self.total.mul_(0.5)",
    "self.count.add_(1)",
)


def cond(condition: Any, then: Any, other: Any) -> Any:
    if torch.compiler.is_exporting():
        return torch.cond(condition, then, other, ())
    return then() if condition else other()


def loop(start: Any, limit: Any, body: Any, *carries: Any) -> Any:
    if torch.compiler.is_exporting():

        def turn(i: Any, *held: Any) -> Any:
            return i + 1, *body(i, *held)

        return while_loop(lambda i, *_: i < limit, turn, (start, *carries))[1:]
    while start < limit:
        start, carries = start + 1, body(start, *carries)
    return carries


def rows(body: Any, xs: Tensor) -> Any:
    if torch.compiler.is_exporting():
        return map_rows(body, xs)
    return [torch.stack(column) for column in zip(*map(body, xs), strict=True)]


def fold(body: Any, carries: Any, xs: Tensor) -> Any:
    if torch.compiler.is_exporting():
        return scan(body, carries, xs, dim=0)
    collected = []
    for x in xs:
        carries, results = body(carries, x)
        collected.append(results)
    return carries, [torch.stack(column) for column in zip(*collected, strict=True)]


class Writer:
    """Writes the text of a program from `draw(low, high)`, a source of integers."""

    def __init__(self, draw: Draw, operators: tuple[str, ...]) -> None:
        self.draw, self.operators = draw, operators
        self.lines: list[str] = []
        self.indent, self.count = 1, 0
        self.scope = [
            ("x", "batch"),
            ("v", "vector"),
            ("k", "integers"),
            ("x.sum(1)", "column"),
            ("v.sum()", "number"),
        ]

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def pick(self, items: Any) -> Any:
        return items[self.draw(0, len(items) - 1)]

    def name(self) -> str:
        self.count += 1
        return f"a{self.count}"

    def fill(self, pattern: str) -> str:
        """Replace ``{kind}`` by variables of that kind."""
        return re.sub(r"\{(\w+)\}", lambda match: self.variable(match[1]), pattern)

    def variable(self, kind: str) -> str:
        fitting = [name for name, held in self.scope if held == kind]
        return str(self.pick(fitting[-2:] if self.draw(0, 1) else fitting[-6:]))

    def expression(self, kind: str) -> str:
        """Return an expression of `kind` that shares no memory with a variable."""
        if self.draw(0, 2) == 0:
            return f"{self.variable(kind)}.clone()"
        return self.fill(self.pick(EXPRESSIONS[kind]))

    def kinds(self, allowed: Any, most: int) -> list[str]:
        return [self.pick(allowed) for _ in range(self.draw(1, most))]

    def assign(self, names: list[str], kinds: list[str], value: str) -> None:
        self.write(f"{', '.join(names)}, = {value}")
        self.scope += zip(names, kinds, strict=True)

    def function(self, arguments: str, known: Any, kinds: list[str], result: str) -> str:
        """Write a nested function that returns values of `kinds`; return its name."""
        name, outer = f"f{self.name()}", list(self.scope)
        self.write(f"def {name}({arguments}):")
        self.indent += 1
        self.scope += known
        self.statements(self.draw(0, 2))
        values = [self.expression(kind) for kind in kinds]
        self.write(f"return {result.format(*values, all=', '.join(values) + ',')}")
        self.indent -= 1
        self.scope = outer
        return name

    def statements(self, count: int) -> None:
        for _ in range(count):
            kind = self.draw(0, 9)
            nested = self.indent > 3
            if kind < 5 or nested:
                held = self.pick(tuple(EXPRESSIONS))
                self.assign([self.name()], [held], f"({self.fill(self.pick(EXPRESSIONS[held]))},)")
            elif kind == 5 and self.indent == 1:
                self.write(self.fill(self.pick(STATE)))
                self.scope.append((self.pick(("self.total", "self.total.view(4)")), "vector"))
            else:
                getattr(self, f"write_{self.pick(self.operators)}")()

    def write_cond(self) -> None:
        kinds = self.kinds(tuple(EXPRESSIONS), 3)
        then, other = (self.function("", (), kinds, "{all}") for _ in range(2))
        condition = self.fill(self.pick(CONDITIONS))
        names = [self.name() for _ in kinds]
        self.assign(names, kinds, f"cond({condition}, {then}, {other})")

    def write_loop(self) -> None:
        kinds = self.kinds(tuple(EXPRESSIONS), 3)
        names = [self.name() for _ in kinds]
        starts = ", ".join(self.variable(kind) for kind in kinds)
        limit = self.fill(self.pick(LIMITS))
        number = "0" if limit == "2" else "torch.zeros((), dtype=torch.int64)"
        known = zip(names, kinds, strict=True)
        body = self.function(f"i, {', '.join(names)}", known, kinds, "{all}")
        self.assign(
            [self.name() for _ in kinds], kinds, f"loop({number}, {limit}, {body}, {starts})"
        )

    def write_rows(self) -> None:
        kinds, row = self.kinds(tuple(STACKED), 2), self.name()
        body = self.function(row, [(row, "vector")], kinds, "{all}")
        names = [self.name() for _ in kinds]
        stacked = [STACKED[kind] for kind in kinds]
        self.assign(names, stacked, f"rows({body}, {self.variable('batch')} * 1)")

    def write_fold(self) -> None:
        held, made = self.kinds(("vector", "number", "integers"), 2), self.kinds(tuple(STACKED), 2)
        row, packed, carries = self.name(), self.name(), [self.name() for _ in held]
        parts = (f"{packed}[{i}]" for i in range(len(held)))
        known = [(row, "vector"), *zip(parts, held, strict=True)]
        slots = ["{" + str(i) + "}" for i in range(len(held) + len(made))]
        result = f"({', '.join(slots[: len(held)])},), ({', '.join(slots[len(held) :])},)"
        body = self.function(f"{packed}, {row}", known, held + made, result)
        names = [self.name() for _ in made]
        starts = ", ".join(f"{self.expression(kind)}" for kind in held)
        call = f"fold({body}, ({starts},), {self.variable('batch')} * 1)"
        self.write(f"({', '.join(carries)},), ({', '.join(names)},) = {call}")
        self.scope += zip(carries, held, strict=True)
        self.scope += zip(names, (STACKED[kind] for kind in made), strict=True)

    def program(self, length: int) -> str:
        self.statements(length)
        returned = [self.pick(self.scope[-8:])[0] for _ in range(self.draw(1, 3))]
        returned.append(self.pick(self.scope)[0])
        self.write(f"return {', '.join(returned)},")
        return "\n".join(["def forward(self, x, v, k):", *self.lines])


class Random(nn.Module):
    """A program of `text` with weights, a layer and state."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        held: dict[str, Any] = {}
        exec(text, globals(), held)
        self.function = held["forward"]
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 4)
        self.weight, self.offset = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))
        self.square = nn.Parameter(torch.randn(4, 4) / 2)
        self.register_buffer("total", torch.randn(4))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor, v: Tensor, k: Tensor) -> Any:
        return self.function(self, x, v, k)


ALL = ("cond", "loop", "rows", "fold")


def random_program(draw: Draw, length: int, operators: tuple[str, ...] = ALL) -> Program:
    """Return a random program of `length` statements and four calls of it."""
    module = Random(Writer(draw, operators).program(length)).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(draw(0, 1000))
    calls = [
        (
            torch.randn(n, 4, generator=generator),
            torch.randn(4, generator=generator),
            torch.randint(0, 6, (4,), generator=generator),
        )
        for n in (3, 1, 6, 2)
    ]
    torch._dynamo.reset()
    return Program(module, calls, ({0: Dim("rows", min=1, max=6)}, None, None))


def seeded_program(seed: int, operators: tuple[str, ...] = ALL) -> Program:
    """Return the random program of a number."""
    source = random.Random(seed)
    return random_program(source.randint, 4 + seed % 4, operators)
