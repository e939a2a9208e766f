# SPDX-License-Identifier: BSD-3-Clause
import json

import pytest
import torch
from etx_exir import (
    BackendDetails,
    DelegationSpec,
    LoweredBackendModule,
    Partitioner,
    PartitionResult,
    to_backend,
    to_edge,
    to_edge_transform_and_lower,
)
from etx_exir.errors import BackendError
from programs import Calls, assert_like_eager, counts
from torch import nn
from toy import ToyBackend, ToyPartitioner

aten = torch.ops.aten
CALL = "executorch_call_delegate"


def exported(module, *inputs, dynamic_shapes=None):
    return torch.export.export(module.eval(), inputs, dynamic_shapes=dynamic_shapes)


def delegates(program):
    return [m for m in program.graph_module.modules() if isinstance(m, LoweredBackendModule)]


def test_tagged_nodes_become_one_delegate_with_their_constants():
    module = Calls(lambda self, x, y: ((x + y) * self.w).relu() + y, w=torch.tensor([1.0, 2.0]))
    x, y = torch.randn(3, 2), torch.randn(3, 2)
    manager = to_edge(exported(module, x, y)).to_backend(ToyPartitioner())
    program = manager.exported_program()
    assert counts(program) == {CALL: 2, "aten.relu.default": 1}
    first, _ = delegates(program)
    blob = json.loads(first.processed_bytes)
    assert [row[0] for row in blob["rows"]] == ["add", "mul"]
    assert list(blob["held"].values()) == [[1.0, 2.0]]
    assert not program.state_dict
    assert_like_eager(program, module, (x, y), (y, x))


def test_the_file_holds_the_blobs():
    module = Calls(lambda x, y: (x + y).relu() * y)
    program = exported(module, torch.randn(3), torch.randn(3))
    edge = to_edge_transform_and_lower(program, partitioner=[ToyPartitioner()])
    from etx_exir import ExecutorchBackendConfig

    finished = edge.to_executorch(ExecutorchBackendConfig(target=None))
    (plan,) = finished.executorch_program.execution_plan
    assert [delegate.id for delegate in plan.delegates] == ["ToyBackend", "ToyBackend"]
    rows = [json.loads(bytes(blob))["rows"] for blob in finished.pte_file.delegates]
    assert [row[0][0] for row in rows] == ["add", "mul"]


def test_operators_are_kept_whole_for_the_partitioner():
    module = nn.Sequential(nn.Hardswish(), nn.ReLU())
    x = torch.randn(4)
    edge = to_edge_transform_and_lower(
        exported(module, x), partitioner=[ToyPartitioner(preserve=[aten.hardswish.default])]
    )
    program = edge.exported_program()
    assert counts(program) == {CALL: 1, "aten.relu.default": 1}
    assert_like_eager(program, module, (x,))


class Nothing(Partitioner):
    def partition(self, exported_program):
        return PartitionResult(exported_program, {})

    def ops_to_not_decompose(self, exported_program):
        return [
            aten.hardswish.default,
            aten.scaled_dot_product_attention.default,
            aten.lstm.input,
        ], None


def test_kept_operators_that_nobody_takes_are_decomposed_after_all():
    def function(q):
        return nn.functional.scaled_dot_product_attention(nn.functional.hardswish(q), q, q)

    module, q = Calls(function), torch.randn(2, 2, 5, 4)
    batch = torch.export.Dim("batch", max=5)
    program = exported(module, q, dynamic_shapes=(({0: batch},),))
    plain = to_edge(program).exported_program()
    edge = to_edge_transform_and_lower(program, partitioner=[Nothing()]).exported_program()
    assert counts(edge) == counts(plain)
    assert_like_eager(edge, module, (q,), (torch.randn(3, 2, 5, 4),))


class OnlyWide(Nothing):
    def ops_to_not_decompose(self, exported_program):
        return [aten.hardswish.default], lambda node: node.meta["val"].shape[-1] > 4

    def partition(self, exported_program):
        self.seen = counts(exported_program)
        return super().partition(exported_program)


def test_the_filter_says_which_calls_stay_whole():
    module = Calls(lambda x, y: (nn.functional.hardswish(x), nn.functional.hardswish(y)))
    partitioner = OnlyWide()
    program = exported(module, torch.randn(8), torch.randn(2))
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    assert partitioner.seen["aten.hardswish.default"] == 1
    assert partitioner.seen["aten.clamp.default"] == 1
    assert "aten.hardswish.default" not in counts(edge.exported_program())


def test_branches_are_partitioned():
    module = Calls(
        lambda x: torch.cond(x.sum() > 0, lambda x: (x + x).sin(), lambda x: x * x, (x,))
    )
    x = torch.ones(3)
    program = to_edge(exported(module, x)).to_backend(ToyPartitioner()).exported_program()
    assert counts(program)[CALL] == 2
    assert_like_eager(program, module, (x,), (-x,))


def test_symbolic_shapes_reach_the_delegate():
    module = Calls(lambda x, y: (x + y) * y)
    batch = torch.export.Dim("batch", max=9)
    x = torch.randn(4, 2)
    program = exported(module, x, x, dynamic_shapes=(({0: batch}, {0: batch}),))
    edge = to_edge(program).to_backend(ToyPartitioner()).exported_program()
    assert_like_eager(edge, module, (x, x), (torch.randn(7, 2),) * 2)


def test_a_whole_program_by_id():
    module = Calls(lambda x, y: (x + y) * y)
    edge = to_edge(exported(module, torch.ones(2), torch.ones(2))).exported_program()
    lowered = to_backend("ToyBackend", edge)
    assert lowered.backend_id == "ToyBackend"
    assert len(json.loads(lowered.processed_bytes)["rows"]) == 2
    result = lowered(torch.ones(2), torch.full((2,), 3.0))
    assert result.tolist() == [12.0, 12.0]


class Tagging(Partitioner):
    def __init__(self, *names, backend="ToyBackend"):
        self.names, self.backend = names, backend

    def partition(self, exported_program):
        for node in exported_program.graph.nodes:
            if node.op == "call_function" and any(n in str(node.target) for n in self.names):
                node.meta["delegation_tag"] = "one"
        return PartitionResult(exported_program, {"one": DelegationSpec(self.backend)})


def test_a_partition_around_other_nodes_is_refused():
    program = exported(Calls(lambda x: (x + x).relu() * x), torch.ones(2))
    with pytest.raises(BackendError, match=r"relu.*itself needs add"):
        to_edge(program).to_backend(Tagging("add", "mul"))


def test_an_unknown_backend_names_those_that_are_known():
    program = exported(Calls(lambda x: x + x), torch.ones(2))
    with pytest.raises(BackendError, match=r"'Nowhere' is unknown; known: .*ToyBackend"):
        to_edge(program).to_backend(Tagging("add", backend="Nowhere"))


class Careless(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        return b"not a result"


def test_a_backend_that_returns_something_else_is_named():
    program = exported(Calls(lambda x: x + x), torch.ones(2))
    with pytest.raises(BackendError, match=r"Careless\.preprocess returned bytes"):
        to_edge(program).to_backend(Tagging("add", backend="Careless"))


def test_reasons():
    edge = to_edge(exported(Calls(lambda x: (x + x).relu()), torch.ones(2))).exported_program()
    reasons = {
        str(n.target): ToyPartitioner().why_not(n) for n in edge.graph.nodes if n.op[:4] == "call"
    }
    assert reasons["aten.add.Tensor"] is None
    assert reasons["aten.relu.default"].endswith("neither an addition nor a product")
    assert ToyBackend.__name__ == "ToyBackend"
