# SPDX-License-Identifier: BSD-3-Clause
"""Choose what is delegated to XNNPACK: needs the extra ``[aot]``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Any

from etx_exir import DelegationSpec, PartitionResult
from etx_exir.ir.constants import Constants
from etx_exir.partitioners import GroupPartitioner, group_nodes
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from etx_backend_xnnpack.lowering import XnnpackBackend
from etx_backend_xnnpack.nodes import TABLE, Work, why_not
from etx_backend_xnnpack.quantized import is_quantization

NOT_WORTH_IT = "its neighbours in XNNPACK hold no convolution and no matrix product"


class XnnpackPartitioner(GroupPartitioner):
    """Delegates every connected run of nodes that `nodes.TABLE` can lower, if one is heavy."""

    def __init__(self) -> None:
        super().__init__(DelegationSpec(XnnpackBackend.__name__))
        self._light: set[Node] = set()
        self._constants: Constants | None = None

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes that XNNPACK has, and the constants that they use."""
        self._constants = Constants(exported_program)
        self._light = set()
        return super().partition(exported_program)

    def groups(self, module: GraphModule) -> list[list[Node]]:
        """Return the groups of supported nodes that hold a heavy one."""
        kept = []
        for group in group_nodes(module.graph, lambda node: self.refusal(node) is None):
            if any(_work(node) is Work.HEAVY for node in group):
                kept.append(group)
            else:
                self._light.update(group)
        return kept

    def refusal(self, node: Node) -> str | None:
        """Return the table's reason."""
        assert self._constants is not None
        if node in self._light:
            return NOT_WORTH_IT
        if is_quantization(node):
            return None
        return why_not(node, self._constants)

    def ops_to_not_decompose(
        self, exported_program: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        """Return the operators that the table wants whole, for the nodes that it takes."""
        kept: list[OpOverload] = [op for op, row in TABLE.items() if row.whole]
        return kept, None


def _work(node: Node) -> Work | None:
    row = TABLE.get(node.target)
    return None if row is None else row.work
