# SPDX-License-Identifier: BSD-3-Clause
"""A backend of one's own: partitions by patterns and groups, delegates, what is delegated."""

from typing import final

import torch
from executorch.exir import to_edge, to_edge_transform_and_lower
from executorch.exir.backend.backend_api import MethodProgramsPartitionerSpec, to_backend
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.canonical_partitioners.group_partitioner import GroupBasedPartitioner
from executorch.exir.backend.canonical_partitioners.pattern_op_partitioner import (
    generate_partitions_from_list_of_nodes,
    generate_pattern_op_partitions,
)
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import (
    format_delegated_graph,
    get_delegates,
    get_delegation_info,
    get_non_lowered_nodes,
    tag_constant_data,
)
from executorch.exir.delegate import executorch_call_delegate
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.lowered_backend_module import LoweredBackendModule, get_lowered_submodules
from executorch.exir.pass_base import ExportPass
from torch.fx.passes.operator_support import OperatorSupportBase

TAKEN = (exir_ops.edge.aten.linear.default, exir_ops.edge.aten.relu.default)


@final
class Reciting(BackendDetails):
    """Its blob is the list of operators."""

    @staticmethod
    def preprocess(edge_program, compile_specs):
        names = [str(n.target) for n in edge_program.graph.nodes if n.op == "call_function"]
        assert compile_specs[0].value == b"loud"
        return PreprocessResult(processed_bytes=", ".join(names).encode())


class Takes(OperatorSupportBase):
    def is_node_supported(self, submodules, node):
        return node.op == "call_function" and node.target in TAKEN


class Mine(Partitioner):
    def __init__(self, propose):
        super().__init__()
        self.propose = propose
        self.delegation_spec = DelegationSpec("Reciting", [CompileSpec("voice", b"loud")])

    def partition(self, exported_program):
        tags = {}
        for partition in self.propose(exported_program.graph_module):
            for node in partition.nodes:
                node.meta["delegation_tag"] = f"tag{partition.id}"
            tags[f"tag{partition.id}"] = self.delegation_spec
        tag_constant_data(exported_program)
        return PartitionResult(tagged_exported_program=exported_program, partition_tags=tags)


def by_support(module):
    return generate_partitions_from_list_of_nodes(module, op_support=Takes())


def by_pattern(module):
    return generate_pattern_op_partitions(module, op_support=Takes())


def by_group(module):
    linears = list(module.graph.find_nodes(op="call_function", target=TAKEN[0]))
    return GroupBasedPartitioner(
        module, Takes(), allows_single_node_partition=True, node_groups=[[n] for n in linears]
    ).propose_partitions()


class Visit(ExportPass):
    """Passes see the calls of delegates."""

    calls = 0

    def call_delegate(self, lowered_module, args, kwargs, meta):
        assert isinstance(lowered_module, LoweredBackendModule)
        Visit.calls += 1
        return super().call_delegate(lowered_module, args, kwargs, meta)


model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Softmax(-1)).eval()
x = torch.randn(2, 4)
exported = torch.export.export(model, (x,))
for propose in (by_support, by_pattern, by_group):
    manager = to_edge(exported).to_backend(Mine(propose))
    module = manager.exported_program().graph_module
    (call,) = module.graph.find_nodes(op="call_function", target=executorch_call_delegate)
    assert "executorch_call_delegate" in module.code
    ((name, lowered, _),) = get_lowered_submodules(module)
    assert lowered.backend_id == "Reciting"
    assert lowered.processed_bytes == b"aten.linear.default, aten.relu.default"
    assert [node.name for node in get_delegates(module.graph)] == [name]
    assert "softmax" in get_non_lowered_nodes(module.graph)[0].name
    assert "Reciting" in format_delegated_graph(module)
    info = get_delegation_info(module)
    assert (info.num_delegated_nodes, info.num_non_delegated_nodes) == (2, 1)
    torch.testing.assert_close(manager.exported_program().module()(x), model(x))
    assert manager.transform([Visit()]).to_executorch().buffer
assert Visit.calls == 3

edge = to_edge(exported).exported_program()
whole = to_backend("Reciting", edge, [CompileSpec("voice", b"loud")])
torch.testing.assert_close(whole(x), model(x))
spec = MethodProgramsPartitionerSpec({"forward": edge}, {"forward": Mine(by_support)})
assert get_lowered_submodules(to_backend(spec)["forward"].graph_module)
assert to_edge_transform_and_lower(exported, partitioner=[Mine(by_support)]).to_executorch().buffer
