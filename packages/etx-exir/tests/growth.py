# SPDX-License-Identifier: BSD-3-Clause
"""What a program's constants take while it is lowered: folding lets no file grow."""

from __future__ import annotations

from etx_exir.ir.constants import Constants
from etx_exir.ir.control_flow_graphs import graph_modules

INSTRUCTION_BYTES = 64


class Growth:
    """An observer of lowering: by how much folding, or all passes together, let a program grow.

    Passes in between may store twice what a later one stores once.
    """

    def __init__(self):
        self.first, self.last, self.calls, self.folding = {}, {}, {}, []

    def __call__(self, name, program, changed):
        now = measure(program)
        before = self.last.get(id(program), now)
        if name == "fold_constants":
            self.folding.append(_growth(before, now))
        self.first.setdefault(id(program), now)
        self.last[id(program)] = now
        self.calls[id(program)] = max(now[1], self.calls.get(id(program), 0))

    @property
    def bytes(self):
        """The most that anything grew by, less than one where nothing did."""
        whole = [
            _growth((self.first[key][0], self.calls[key]), last) for key, last in self.last.items()
        ]
        return max(*whole, *self.folding)


def _growth(before, now):
    return now[0] - before[0] - INSTRUCTION_BYTES * max(0, before[1] - now[1])


def measure(program):
    """Return the bytes of the constants that are read, each memory once, and count the calls."""
    live = set()
    for module in graph_modules(program.graph_module):
        for node in reversed(module.graph.nodes):
            if node.op == "output" or not live.isdisjoint(node.users):
                live.add(node)
    held = {
        (tensor.data_ptr(), tensor.nbytes): tensor.nbytes
        for node, tensor in Constants(program).items()
        if node in live
    }
    return sum(held.values()), sum(node.op == "call_function" for node in live)
