# SPDX-License-Identifier: BSD-3-Clause
"""The partitioner, and `preprocess`: from a partition to the delegate's code."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Mapping
from typing import Any

import torch
from etx_exir import (
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    NamedDataStore,
    PartitionResult,
    PreprocessResult,
)
from etx_exir.errors import BackendError
from etx_exir.ir.constants import Constants
from etx_exir.partitioners import OperatorSupportPartitioner
from torch import nn
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase

from pointwise_aot.code import Assembler
from pointwise_aot.table import TABLE, WHOLE, is_single, operands, shape, why_not

BLOCKS = (16, 4096)


def partitioner(compile_specs: list[CompileSpec]) -> PointwisePartitioner:
    """Return the partitioner for `etx compile --backend pointwise[:block=256]`."""
    return PointwisePartitioner(compile_specs)


class PointwisePartitioner(OperatorSupportPartitioner):
    """Delegates chains of at least two pointwise operators on tensors of one shape."""

    def __init__(self, compile_specs: list[CompileSpec] | None = None, minimum: int = 2) -> None:
        specs = list(compile_specs or ())
        check_specs(specs)
        spec = DelegationSpec("PointwiseBackend", specs)
        options: dict[str, Any] = {"minimum": minimum, "preserve": WHOLE}
        super().__init__(spec, (), fits=lambda a, b: shape(a) == shape(b), **options)

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the chains, and the constants that they use."""
        self.support = Support(exported_program)
        return super().partition(exported_program)


class Support(OperatorSupportBase):
    """Says which nodes of a program can be lowered."""

    def __init__(self, program: ExportedProgram) -> None:
        self.constants = Constants(program)

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Take operators of the table that need no broadcast."""
        return node.op == "call_function" and self.why_not(node) is None

    def why_not(self, node: Node) -> str | None:
        """Return why `node` cannot be lowered, or None when it can."""
        reason = why_not(node)
        if reason is not None:
            return reason
        whole = [n for n in node.all_input_nodes if shape(n) == shape(node)]
        if all(self.constants.get(item) is not None for item in whole):
            return "no tensor of its shape is computed at run time"
        return None


class PointwiseBackend(BackendDetails):
    """Turns a chain into code for registers that each hold a block of elements."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Return the code; constants of more than one number are data named by their hash."""
        check_specs(compile_specs)
        code, store, registers = Assembler(), NamedDataStore(), dict[Node, int]()
        constants = Constants(edge_program)
        inputs = [
            node
            for node in edge_program.graph.find_nodes(op="placeholder")
            if constants.get(node) is None
        ]
        calls = [node for node in edge_program.graph.nodes if node.op == "call_function"]
        whole = shape(calls[0])
        shape_of = next(i for i, node in enumerate(inputs) if shape(node) == whole)

        def register(item: Any) -> int:
            if not isinstance(item, Node):
                return code.constant(float(item))
            if item not in registers:
                tensor = constants.get(item)
                if tensor is None:
                    single = shape(item) != whole
                    registers[item] = code.load(inputs.index(item), single=single)
                elif is_single(item):
                    registers[item] = code.constant(tensor.item())
                else:
                    registers[item] = code.tensor(_named(store, tensor))
            return registers[item]

        for node in calls:
            if node.target is operator.getitem or node.target not in TABLE:
                raise BackendError(f"PointwiseBackend cannot lower {node.target}")
            given = [None if item is None else register(item) for item in operands(node)]
            registers[node] = TABLE[node.target].lower(code, given)
        (results,) = edge_program.graph.output_node().args
        for index, node in enumerate(results):
            code.store(index, registers[node])
        blob = code.encode(len(inputs), len(results), shape_of)
        return PreprocessResult(blob, data_store_output=store.get_named_data_store_output())


def check_specs(compile_specs: list[CompileSpec]) -> None:
    """Refuse an option that the delegate does not know."""
    for spec in compile_specs:
        value = bytes(spec.value).decode("ascii", "replace")
        if spec.key != "block":
            raise BackendError(f"PointwiseBackend has no option {spec.key!r}; known: block")
        if not value.isdecimal() or not BLOCKS[0] <= int(value) <= BLOCKS[1]:
            raise BackendError(f"block={value}: expected a number from {BLOCKS[0]} to {BLOCKS[1]}")


def _named(store: NamedDataStore, tensor: torch.Tensor) -> str:
    data = tensor.detach().contiguous().numpy().tobytes()
    name = hashlib.sha256(data).hexdigest()
    store.add_named_data(name, data, 64)
    return name
