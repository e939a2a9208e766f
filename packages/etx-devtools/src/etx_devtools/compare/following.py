# SPDX-License-Identifier: BSD-3-Clause
"""The model in eager mode beside a recorded execution: each value is held until it is compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.fx import Node

from etx_devtools.compare.reference import Reference, walk

__all__ = ["Following"]


class Following:
    """Runs a program as far as a value that is asked for; `names` are those to come, in any order.

    What nobody asks for is not kept, and what was asked for as often as `names` has it is let go.
    """

    def __init__(
        self, reference: Reference, bound: Mapping[Node, Any], names: Iterable[str]
    ) -> None:
        self.reference = reference
        self.left: dict[str, int] = {}
        for name in names:
            self.left[name] = self.left.get(name, 0) + 1
        self.found: dict[str, list[Any]] = {}
        self.times: dict[str, int] = {}
        self.passed: set[Node] = set()
        self.returned: list[Any] | None = None
        self.steps = walk(reference.program.graph_module, dict(bound), self._keep)

    def take(self, name: str) -> Any:
        """Return the value `name`, the next time that it is computed; None where it is not."""
        node = self.reference.outermost(name)
        while node is not None and node not in self.passed and self.returned is None:
            self._step()
        turn, known = self.times.get(name, 0), self.found.get(name, [])
        self.times[name] = turn + 1
        self.left[name] = self.left.get(name, 0) - 1
        if self.left[name] <= 0:
            self.found.pop(name, None)
        return known[turn] if turn < len(known) else None

    def outputs(self) -> list[Any]:
        """Run to the end; return what the graph returns."""
        while self.returned is None:
            self._step()
        return self.returned

    def _keep(self, node: Node, result: Any) -> None:
        name = self.reference.names.get(node)
        if name is not None and self.left.get(name, 0) > 0:
            self.found.setdefault(name, []).append(result)

    def _step(self) -> None:
        try:
            with torch.no_grad():
                self.passed.add(next(self.steps))
        except StopIteration as end:
            self.returned = list(end.value)
