# SPDX-License-Identifier: BSD-3-Clause
"""Choose what is delegated to XNNPACK: needs the extra ``[aot]``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import torch
from etx_exir import CompileSpec, DelegationSpec, PartitionResult
from etx_exir.errors import BackendError
from etx_exir.ir.constants import Constants
from etx_exir.partitioners import GroupPartitioner, group_nodes
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from etx_backend_xnnpack.bounds import BOUNDS, BoundedChoices
from etx_backend_xnnpack.builder import FLOATS
from etx_backend_xnnpack.caches import CachesBeside
from etx_backend_xnnpack.chains import own_chains
from etx_backend_xnnpack.costs import cost
from etx_backend_xnnpack.known import KnownTensors
from etx_backend_xnnpack.lowering import XnnpackBackend
from etx_backend_xnnpack.masks import AddedMasks
from etx_backend_xnnpack.nodes import TABLE, Work, why_not
from etx_backend_xnnpack.nodes.clamps import range_of
from etx_backend_xnnpack.quantized import (
    DEQUANTIZE,
    DEQUANTIZE_AT_RUN_TIME,
    OF_GROUPS,
    QUANTIZE,
    affine,
    at_run_time,
    dynamic,
    is_quantization,
    weight,
)

OTHER_FLOATS = torch.bfloat16, torch.float64
NOT_WORTH_IT = "nothing that it could be delegated with is a convolution or a matrix product"


class ConfigPrecisionType(Enum):
    """In what numbers an operator computes."""

    FP32 = "float32 or float16"
    STATIC_QUANT = "int8 with given scales"
    DYNAMIC_QUANT = "int8 with scales from the data"


class XnnpackPartitioner(GroupPartitioner):
    """Delegates every connected run of nodes that `nodes.TABLE` can lower, where it pays.

    A run pays if one of its nodes is heavy and, by the figures of `speeds.json`, XNNPACK with the
    way there and back takes no longer than ETX's own kernels, within a margin for other machines.
    `configs` names the operators to take, `config_precisions` the numbers in which they compute;
    all by default. In `per_op_mode` each operator is a delegate of its own. `heavy_only=False`
    takes every run, whether it pays or not.
    """

    def __init__(
        self,
        configs: Iterable[OpOverload] | None = None,
        config_precisions: ConfigPrecisionType | Iterable[ConfigPrecisionType] | None = None,
        per_op_mode: bool = False,
        *,
        heavy_only: bool = True,
    ) -> None:
        super().__init__(DelegationSpec(XnnpackBackend.__name__))
        self.operators = frozenset(TABLE if configs is None else configs)
        if isinstance(config_precisions, ConfigPrecisionType):
            config_precisions = [config_precisions]
        self.precisions = frozenset(config_precisions or ConfigPrecisionType)
        self.per_op_mode = per_op_mode
        self.heavy_only = heavy_only
        self._light: dict[Node, str] = {}
        self._constants: Constants | None = None
        unknown = [str(op) for op in self.operators if op not in TABLE]
        if unknown:
            raise BackendError(f"configs: XNNPACK has no form for {', '.join(sorted(unknown))}")

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes that XNNPACK has, and the constants that they use."""
        changes = [KnownTensors(), AddedMasks(), CachesBeside()]
        if not self.per_op_mode and self.operators >= {bound for bound, _ in BOUNDS}:
            changes.append(BoundedChoices())
        for change in changes:
            change.run(exported_program)
        self._constants = Constants(exported_program)
        self._light = {}
        own_chains(exported_program.graph, self._begins, each=self.per_op_mode)
        return super().partition(exported_program)

    def groups(self, module: GraphModule) -> list[list[Node]]:
        """Return the groups of supported nodes that hold a heavy one."""
        bundles = [_bundle(n) for n in module.graph.nodes if self._begins(n)]
        found = group_nodes(
            module.graph,
            lambda node: not self.per_op_mode and self.refusal(node) is None,
            bundles if self.per_op_mode else (),
            join=not self.per_op_mode,
        )
        kept = []
        for group in found:
            reason = self._not_worth(group)
            if reason is None:
                kept.append(group)
            else:
                self._light.update(dict.fromkeys(group, reason))
        return kept

    def _not_worth(self, group: list[Node]) -> str | None:
        """Return why a group is better left outside."""
        if not self.heavy_only:
            return None
        if not any(_is_heavy(node) for node in group):
            return NOT_WORTH_IT
        assert self._constants is not None
        found = cost(group, self._constants.get)
        return None if found.pays else str(found)

    def refusal(self, node: Node) -> str | None:
        """Return the table's reason, or that of an option."""
        assert self._constants is not None
        if node in self._light:
            return self._light[node]
        if is_quantization(node):
            return self._quantization(node)
        if node.target in TABLE and node.target not in self.operators:
            return f"configs does not name {node.target}"
        reason = why_not(node, self._constants)
        if reason is None and self._precision(node) not in self.precisions:
            names = ", ".join(sorted(each.value for each in self.precisions))
            return f"it computes in {self._precision(node).value}; this partitioner takes {names}"
        return reason

    def ops_to_not_decompose(
        self, exported_program: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        """Return the operators that the table wants whole, for the nodes that it takes."""
        given = _Placeholders(frozenset(exported_program.graph_signature.user_inputs))
        whole = [OF_GROUPS, *(op for op in self.operators if TABLE[op].whole)]
        return whole, lambda node: _is_kept(node, given)

    def _begins(self, node: Node) -> bool:
        return node.target in TABLE and self.refusal(node) is None

    def _precision(self, node: Node) -> ConfigPrecisionType:
        if any(dynamic(arg) for arg in node.all_input_nodes):
            return ConfigPrecisionType.DYNAMIC_QUANT
        near = (*node.all_input_nodes, *node.users)
        if any(arg.target in (QUANTIZE, DEQUANTIZE) for arg in near):
            return ConfigPrecisionType.STATIC_QUANT
        return ConfigPrecisionType.FP32

    def _quantization(self, node: Node) -> str | None:
        """Return why a node that only converts numbers stays out."""
        assert self._constants is not None
        reals = [each.meta.get("val") for each in (node, *node.all_input_nodes[:1])]
        if any(isinstance(real, torch.Tensor) and real.dtype in OTHER_FLOATS for real in reals):
            return "it converts from or to other than float32 or float16"
        if weight(node, self._constants.get) is not None:
            return None
        if at_run_time(node):
            return self._run_time_quantization(node)
        if node.target in (QUANTIZE, DEQUANTIZE):
            at = affine(node)
            if at is None:
                return "it quantizes to other than int8"
            if not at.scale > torch.finfo(torch.float32).tiny:
                return "its scale is not a positive normal number"
            if ConfigPrecisionType.STATIC_QUANT in self.precisions:
                return None
            return "this partitioner takes no int8 with given scales"
        return "a weight in a form that XNNPACK's kernels do not take"

    def _run_time_quantization(self, node: Node) -> str | None:
        """Require that all that reads the scales and integers is a layer that is delegated."""
        if node.target in DEQUANTIZE_AT_RUN_TIME:
            if dynamic(node) is None:
                return "its scale does not come from the tensor that it quantizes"
            for user in node.users:
                row = TABLE.get(user.target)
                if row is None or not row.dynamic or user.args[0] is not node:
                    return f"{user.target} has no form with rows that are quantized at run time"
                reason = self.refusal(user)
                if reason is not None:
                    return f"what reads it is not delegated: {reason}"
            return None
        for user in node.users:
            picked = list(user.users) if user.target is operator.getitem else [user]
            for reader in picked:
                if not at_run_time(reader):
                    return f"{reader.target} reads what is computed at run time"
                reason = self._run_time_quantization(reader)
                if reason is not None:
                    return reason
        return None


def _is_heavy(node: Node) -> bool:
    row = TABLE.get(node.target)
    return row is not None and row.work is Work.HEAVY


class XnnpackFloatingPointPartitioner(XnnpackPartitioner):
    """Delegates what computes in float32 or float16."""

    def __init__(self) -> None:
        super().__init__(config_precisions=ConfigPrecisionType.FP32)


class XnnpackQuantizedPartitioner(XnnpackPartitioner):
    """Delegates what computes in int8 with given scales."""

    def __init__(self) -> None:
        super().__init__(config_precisions=ConfigPrecisionType.STATIC_QUANT)


class XnnpackDynamicallyQuantizedPartitioner(XnnpackPartitioner):
    """Delegates layers whose activations are quantized at run time, each on its own."""

    def __init__(self) -> None:
        super().__init__(config_precisions=ConfigPrecisionType.DYNAMIC_QUANT, per_op_mode=True)


def partitioner(compile_specs: list[CompileSpec]) -> XnnpackPartitioner:
    """Return the partitioner for `etx compile --backend xnnpack`."""
    if compile_specs:
        raise BackendError(f"XnnpackBackend takes no options, got {compile_specs[0].key!r}")
    return XnnpackPartitioner()


def _is_kept(node: Node, constants: Any) -> bool:
    """Tell whether an operator of float32 or float16 can be emitted whole."""
    if node.target == OF_GROUPS:
        return all(user.target in TABLE and TABLE[user.target].dynamic for user in node.users)
    value: Any = node.args[0].meta.get("val") if isinstance(node.args[0], Node) else None
    if not isinstance(value, torch.Tensor) or value.dtype not in FLOATS:
        return False
    if value.dim() == 0:
        return False
    return all(check(node, constants) is None for check in TABLE[node.target].checks)


class _Placeholders:
    """Stands for a program's constants where only their sizes matter."""

    def __init__(self, arguments: frozenset[Any]) -> None:
        self.arguments = arguments

    def get(self, node: object) -> torch.Tensor | None:
        """Return the value of a placeholder that is not an argument of the program."""
        if not isinstance(node, Node) or node.op != "placeholder" or node.name in self.arguments:
            return None
        found: torch.Tensor = node.meta["val"]
        return found


def _bundle(node: Node) -> list[Node]:
    """Return an operator with what converts its arguments and its result, and its clamp."""
    found = [node]
    for arg in node.all_input_nodes:
        if is_quantization(arg):
            chain = dynamic(arg)
            found = (
                [*(n for n in chain.nodes if is_quantization(n)), *found]
                if chain
                else [arg, *found]
            )
    last = node
    while len(last.users) == 1:
        (user,) = last.users
        if range_of(user) is None and user.target != QUANTIZE:
            break
        found.append(user)
        last = user
        if user.target == QUANTIZE:
            break
    return found
