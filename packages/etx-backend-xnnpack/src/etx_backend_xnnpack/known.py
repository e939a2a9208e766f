# SPDX-License-Identifier: BSD-3-Clause
"""``x + f(constants)`` -> ``x + the constant f(constants)``, even if the file is larger for it.

ETX's own kernels compute a table of places or a mask at each call where that makes a smaller file;
for XNNPACK, which has no form of it, each is a crossing.
"""

from __future__ import annotations

from collections.abc import Sequence

from etx_exir.analysis.constant_expressions import Expression
from etx_exir.passes.simplify.fold_constants import FoldConstants
from torch.fx import Node

from etx_backend_xnnpack.nodes.table import TABLE

MOST_BYTES = 1 << 24


class KnownTensors(FoldConstants):
    """Store what XNNPACK's nodes read of constants, and cannot compute from them themselves."""

    def choose(self, items: Sequence[Expression]) -> set[Node]:
        """Return what is read by nodes of the table, and computed by others."""
        chosen, foreign = set(), set[Node]()
        known = {item.node for item in items}
        for item in items:
            if item.is_leaf:
                continue
            node = item.node
            if node.target not in TABLE or any(arg in foreign for arg in node.all_input_nodes):
                foreign.add(node)
            is_read = any(user not in known and user.target in TABLE for user in node.users)
            if node in foreign and is_read and 0 < (item.nbytes or 0) <= MOST_BYTES:
                chosen.add(node)
        return chosen
