# SPDX-License-Identifier: BSD-3-Clause
"""Choose what is lowered to TOSA: needs the extra ``[aot]``."""

from __future__ import annotations

from typing import Any

import torch
from etx_exir import CompileSpec, DelegationSpec, PartitionResult
from etx_exir.errors import BackendError
from etx_exir.ir.constants import Constants
from etx_exir.ir.provenance import source_line
from etx_exir.partitioners import GroupPartitioner, group_nodes
from etx_exir.partitioners.duplicates import split_dequantize
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from etx_backend_arm.around_views import enclose_views
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.lowering import TOSABackend
from etx_backend_arm.narrow import narrow_indices, split_constants
from etx_backend_arm.nodes import TABLE, Profile, why_not
from etx_backend_arm.nodes.indices import argmax_of
from etx_backend_arm.nodes.table import FLOATS
from etx_backend_arm.promoted import promote_constants
from etx_backend_arm.quantized import (
    DEQUANTIZE,
    FILLED,
    INDEXED,
    OF_CHANNELS,
    QUANTIZE,
    Look,
    Step,
    clamp_of,
    find_step,
    is_index,
    split_of,
    weight_of,
    with_quantized,
)
from etx_backend_arm.rewrites import take_apart

__all__ = ["TOSAPartitioner", "partitioner"]

aten = torch.ops.aten
WHOLE = (
    aten.erfinv.default,
    aten.hardsigmoid.default,
    aten.hardswish.default,
    aten.layer_norm.default,
    aten.lstm.input,
    aten.matmul.default,
    aten.max_pool2d.default,
    aten.mish.default,
    aten.silu.default,
    aten.softmax.int,
    aten.softplus.default,
    aten.tril.default,
    aten.triu.default,
)
"""Operators of the table that the compiler would take apart."""
MADE = (*FILLED, QUANTIZE)
"""Groups of nothing else compute nothing."""
FLOATS_TOO = (aten.erfinv.default, aten.mish.default, aten.softplus.default)
"""Those of them that floats have as one row, too."""


class TOSAPartitioner(GroupPartitioner):
    """Delegates every connected run of operators that ``nodes.TABLE`` can lower.

    What is quantized goes in with the nodes that dequantize its inputs and quantize its result, so
    that integers cross the border.
    """

    def __init__(self, compile_spec: TosaCompileSpec | None = None) -> None:
        self.compile_spec = compile_spec or TosaCompileSpec()
        self._look: Look = lambda node: None
        specs = self.compile_spec.to_list()
        super().__init__(
            DelegationSpec(TOSABackend.__name__, specs), preserve=WHOLE, keep=self._stays_whole
        )
        self.name = self.compile_spec.tosa_spec
        """Of what the program is for."""
        self.program: ExportedProgram | None = None
        self.limits: dict[Node, str | None] = {}

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes that TOSA has, and the constants that they use.

        Raises BackendError for floats where only integers are computed and nothing is quantized.
        """
        self.program, self.limits = exported_program, {}
        if Profile.FP not in self.compile_spec.profiles:
            self._require_integers(exported_program)
        promote_constants(exported_program)
        self._look = with_quantized(Constants(exported_program).get)
        enclose_views(exported_program)
        split_dequantize(exported_program)
        split_constants(exported_program, self._look)
        narrow_indices(exported_program, self._look, self.refusal)
        take_apart(exported_program, self.refusal)
        return super().partition(exported_program)

    def _require_integers(self, program: ExportedProgram) -> None:
        nodes = [node for node in program.graph.nodes if node.op == "call_function"]
        if any(node.target in (QUANTIZE, DEQUANTIZE, OF_CHANNELS) for node in nodes):
            return
        for node in nodes:
            held = node.meta.get("val")
            is_float = isinstance(held, torch.Tensor) and held.dtype in FLOATS
            if is_float and Profile.INT in TABLE.get(node.target, {}):
                line = source_line(node)
                at = f" ({line})" if line else ""
                raise BackendError(
                    f"{self.name} computes integers, and nothing of the program is quantized: "
                    f"{node.target}{at} is {str(held.dtype)[6:]}; quantize the model first, by "
                    "etx_quant.quantize(model, batches, TOSAQuantizer() or EthosUQuantizer(spec)) "
                    "or `etx compile --quantize int8 --calibrate FILE.npz`"
                )

    def groups(self, module: GraphModule) -> list[list[Node]]:
        """Return the groups of supported operators, each with its conversions."""
        calls = [node for node in module.graph.nodes if node.op == "call_function"]
        own = [node for node in calls if self._owner(node) is node]
        bundles = [self._bundle(node) for node in own if self.integer(node) is None]
        taken = {node for bundle in bundles for node in bundle}
        plain = {n for n in calls if n not in taken and self._floating(n) is None}
        groups = group_nodes(module.graph, plain.__contains__, bundles)
        return [group for group in groups if any(n.target not in MADE for n in group)]

    def refusal(self, node: Node) -> str | None:
        """Return the reason of the table, or of what a conversion belongs to."""
        if node.target is OF_CHANNELS or weight_of(node, self._look) is not None:
            return f"what reads {node.name} is not delegated"
        if node.target is DEQUANTIZE:
            return f"{node.name} makes floats for what is not delegated"
        if node.target is QUANTIZE:
            return f"{node.name} quantizes what is not made by the delegate"
        reason = self.integer(self._owner(node))
        if reason is None or Profile.FP not in self.compile_spec.profiles:
            return reason
        return self._floating(node)

    def integer(self, node: Node) -> str | None:
        """Return why a node has no form in the profile INT, or None when it has one."""
        spec, source = self.compile_spec, argmax_of(node)
        if Profile.INT not in spec.profiles:
            return "the program may not use TOSA's profile INT"
        if source is not None:
            return self.integer(source)
        reason = why_not(node, self._look, Profile.INT)
        if reason is None and not spec.has("int16") and self.is_wide(node):
            return f"{node.name} is between int16, which {spec.tosa_spec} has not: add +int16"
        return reason

    def is_wide(self, node: Node) -> bool:
        """Tell whether an operator is between integers of 16 bits."""
        found = find_step(node, self._look)
        return isinstance(found, Step) and found.form.is_wide

    def _stays_whole(self, node: Node) -> bool:
        if node.target in FLOATS_TOO and self._floating(node) is None:
            return True
        if node.target is aten.lstm.input and not _is_quantized(node):
            return Profile.FP in self.compile_spec.profiles and _starts_with_constants(node)
        return node.target is aten.max_pool2d.default or _is_quantized(node)

    def _owner(self, node: Node) -> Node:
        """Return the operator that takes a clamp in, or the node itself."""
        source = node.all_input_nodes[0] if node.all_input_nodes else None
        if clamp_of(node) is None or source is None or source.target not in TABLE:
            return node
        found = find_step(source, self._look)
        return source if isinstance(found, Step) and found.clamp is node else node

    def _floating(self, node: Node) -> str | None:
        if Profile.FP not in self.compile_spec.profiles:
            return "the program may not use TOSA's profile FP"
        source = argmax_of(node)
        if source is not None:
            return self._floating(source)
        reason = why_not(node, self._look, Profile.FP)
        if reason is None and not self.compile_spec.has("bf16") and _has_bfloat16(node):
            spec = self.compile_spec.tosa_spec
            return f"{node.name} is of bfloat16, which {spec} has not: add +bf16"
        return reason

    def _bundle(self, node: Node) -> list[Node]:
        found = find_step(node, self._look)
        if not isinstance(found, Step):
            return [*(n for n in node.all_input_nodes if n.target is DEQUANTIZE), node]
        split = split_of(node)
        before = [
            n
            for n in (split or node).all_input_nodes
            if n.op == "call_function" and not (node.target in INDEXED and is_index(n))
        ]
        held: list[Any] = [n.args[0] for n in before if n.target is DEQUANTIZE]
        constant = [n for n in held if n.target is QUANTIZE and self._look(n) is not None]
        return [
            *constant,
            *before,
            *([split] if split else []),
            node,
            *([found.clamp] if found.clamp else []),
            found.result,
        ]


def _has_bfloat16(node: Node) -> bool:
    held = [each.meta.get("val") for each in (node, *node.all_input_nodes)]
    return any(isinstance(each, torch.Tensor) and each.dtype == torch.bfloat16 for each in held)


def _is_quantized(node: Node) -> bool:
    source: object = node.args[0]
    return isinstance(source, Node) and source.target is DEQUANTIZE


def _starts_with_constants(node: Node) -> bool:
    """Tell whether the first state of an LSTM can be a constant, whose value is not known yet."""
    states: Any = node.args[1]
    return all(each.op != "placeholder" or each.name.startswith("c_") for each in states)


def partitioner(compile_specs: list[CompileSpec]) -> TOSAPartitioner:
    """Return the partitioner for `etx compile --backend tosa`; its option is ``tosa_spec``."""
    return TOSAPartitioner(TosaCompileSpec.from_list(compile_specs))
