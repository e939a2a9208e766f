# SPDX-License-Identifier: BSD-3-Clause
"""What loops of an exported program are made of, and the turn that one is in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

__all__ = ["LOOPS", "Loop", "Turn", "loop_of", "several"]

WHILE, SCAN, MAP = LOOPS = tuple(
    getattr(torch.ops.higher_order, name) for name in ("while_loop", "scan", "map_impl")
)


@dataclass(frozen=True)
class Loop:
    """Calls `body` on what it returned before, on a row of `rows` and on `extra`.

    It goes on while `condition` of what it carries and `extra` holds; where that is None, for each
    row. What `body` returns beside what is carried is stacked.
    """

    condition: Any
    body: Any
    initial: tuple[Any, ...]
    rows: tuple[Any, ...]
    extra: tuple[Any, ...]

    @property
    def graphs(self) -> tuple[Any, ...]:
        """The condition, if there is one, and the body."""
        return (self.body,) if self.condition is None else (self.condition, self.body)

    def run(self) -> tuple[Any, ...] | None:
        """Return the results of a loop that holds values; None where it has not one row."""
        if self.condition is None and not len(self.rows[0]):
            return None
        turn = Turn(self, list(self.initial), self.rows)
        while turn.goes_on() if self.condition is None else _holds(self, turn):
            turn.next(several(self.body(*turn.operands())))
        return tuple(turn.results())


def loop_of(target: Any, args: Sequence[Any]) -> Loop | None:
    """Return the loop that calling `target` on `args`, nodes or values, is; None if it is none."""
    if target is WHILE:
        condition, body, initial, extra = args
        return Loop(condition, body, several(initial), (), several(extra))
    if target is SCAN:
        body, initial, rows, extra = args
        return Loop(None, body, several(initial), several(rows), several(extra))
    if target is MAP:
        body, rows, extra = args
        return Loop(None, body, (), several(rows), several(extra))
    return None


@dataclass
class Turn:
    """The values with which a turn of a loop begins, and what the turns before left."""

    loop: Loop
    carried: list[Any]
    rows: Sequence[Any]
    number: int = 0
    stacked: list[tuple[Any, ...]] = field(default_factory=list)

    def operands(self) -> tuple[Any, ...]:
        """Return what the body is called on; IndexError after the last row."""
        return (*self.carried, *(rows[self.number] for rows in self.rows), *self.loop.extra)

    def goes_on(self) -> bool:
        """Whether there is a row for this turn."""
        return self.number < min(map(len, self.rows))

    def next(self, returned: Sequence[Any]) -> None:
        """Go on to the next turn with what the body returned."""
        count = len(self.carried)
        self.carried = list(returned[:count])
        self.stacked.append(tuple(returned[count:]))
        self.number += 1

    def results(self) -> list[Any]:
        """Return what is carried, and the rows that were returned as one tensor each."""
        stacks = zip(*self.stacked, strict=True)
        return [*self.carried, *(torch.stack(rows) for rows in stacks)]


def _holds(loop: Loop, turn: Turn) -> bool:
    condition: Callable[..., Any] = loop.condition
    return bool(several(condition(*turn.carried, *loop.extra))[0])


def several(results: Any) -> tuple[Any, ...]:
    """Return results as a tuple, also a single one."""
    is_many = isinstance(results, (tuple, list)) and not isinstance(results, Node)
    return tuple(results) if is_many else (results,)
