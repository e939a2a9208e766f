# SPDX-License-Identifier: BSD-3-Clause
"""Each case becomes one delegate, whose blob is well formed and computes what eager does.

Nothing of the table is untested. `interop/` runs the same files on ExecuTorch's own runtime.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import etx_runtime
import pytest
import torch
from case import Case
from cases import CASES, HALF
from etx_backend_xnnpack import read_blob
from etx_backend_xnnpack._generated.xnnpack import (
    Graph,
    Operator,
    QuantizedTensorValue,
    TensorValue,
)
from etx_backend_xnnpack.costs import cost, figures
from etx_backend_xnnpack.nodes import TABLE
from etx_backend_xnnpack.partition import NOT_WORTH_IT, XnnpackPartitioner
from etx_exir import (
    EdgeProgramManager,
    ExecutorchBackendConfig,
    get_delegation_info,
    to_edge,
    to_edge_transform_and_lower,
)
from etx_exir.delegation.explain import outside
from etx_exir.ir.constants import Constants
from etx_exir.ir.equal_values import note_of
from etx_schema import NamedBlob, Table
from lowered import export, lower, made
from torch import nn
from torch.utils import _pytree as pytree

NONE = 2**32 - 1
lowered = cache(lower)


def delegates(edge: EdgeProgramManager) -> list[Any]:
    """Return the delegates of a program."""
    module = edge.exported_program().graph_module
    nodes = module.graph.find_nodes(op="get_attr")
    return [getattr(module, node.target) for node in nodes]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_is_one_delegate(case: Case) -> None:
    edge = lowered(case)
    (delegate,) = delegates(edge)
    assert sorted(row.operator for row in outside(edge.exported_program())) == sorted(case.outside)
    check_graph(
        read_blob(delegate.processed_bytes).graph, delegate.named_data_store_output.pte_data
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_agrees_with_eager(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "case.pte"
    lowered(case).to_executorch(ExecutorchBackendConfig(target=None)).save(file)
    method = etx_runtime.Runtime.get().load_program(file).load_method("forward")
    for arguments in case.arguments():
        with torch.no_grad():
            expected = pytree.tree_leaves(made(case)(*arguments))
        found = method.execute(list(arguments))
        for one, other in zip(found, expected, strict=True):
            worst = float(other.abs().max()) * case.tol
            torch.testing.assert_close(torch.as_tensor(one), other, rtol=0, atol=worst)


def check_graph(graph: Graph, data: Mapping[str, NamedBlob]) -> None:
    """Every id is defined before it is used, and once; every constant is stored, at 16 bytes."""
    tensors = [tensor(value.tensor) for value in graph.values]
    assert [t.id for t in tensors] == list(range(len(tensors)))
    known = {t.id for t in tensors if t.constant_index or t.id in graph.input_ids}
    for node in graph.nodes:
        assert isinstance(node.operator, Table)
        ids = {f.name: getattr(node.operator, f.name) for f in node.operator.FIELDS}
        ids = {name: number for name, number in ids.items() if name.endswith("_id")}
        made = {ids.pop(name) for name in list(ids) if name.startswith("output")}
        assert {number for number in ids.values() if number != NONE} <= known
        assert not made & known
        known |= made
    assert set(graph.output_ids) <= known
    assert graph.num_externals == len(graph.input_ids) + len(graph.output_ids)
    for place in graph.constant_data[1:]:
        assert len(data[str(place.named_key)].data) == place.size
        assert data[str(place.named_key)].alignment % 16 == 0


def tensor(value: Any) -> TensorValue:
    """Return the plain part of a value."""
    found = value.tensor if isinstance(value, QuantizedTensorValue) else value
    assert isinstance(found, TensorValue)
    return found


def test_every_lowering_has_a_case() -> None:
    untested = {row.emit: str(op) for op, row in TABLE.items()}
    for case in sorted(CASES, key=lambda case: case.half):  # those of float16 are a part of a run
        if untested:
            for delegate in delegates(lowered(case)):
                for node in delegate.original_module.graph.nodes:
                    if node.target in TABLE:
                        untested.pop(TABLE[node.target].emit, None)
    assert list(untested.values()) == []


def graph_of(case_name: str) -> Graph:
    """Return the graph of a case."""
    (case,) = (case for case in CASES if case.name == case_name)
    (delegate,) = delegates(lowered(case))
    return read_blob(delegate.processed_bytes).graph


def kinds(case_name: str) -> list[str]:
    """Return the kinds of node of a case."""
    return [node.operator_type.name for node in graph_of(case_name).nodes]


INTEGERS = ["pool_avg", "pool_avg_padded", "pool_adaptive", "pool_adaptive_to_one", "hardsigmoid"]
NUMBERS = ["add_number", "add_small_number", "sub_number", "mul_number"]


@pytest.mark.parametrize("name", [*INTEGERS, *NUMBERS])
def test_nothing_between_integers_is_float(name: str) -> None:
    graph = graph_of(f"int8_{name}")
    real = {v.tensor.id for v in graph.values if isinstance(v.tensor, TensorValue)}
    found = set()
    for node in graph.nodes:
        assert isinstance(node.operator, Table)
        ids = {getattr(node.operator, f.name) for f in node.operator.FIELDS if "_id" in f.name}
        found |= {node.operator_type.name} if ids & real else set()
    assert found <= {"Convert", "Transpose", "Reshape"}


def test_layouts_change_at_the_borders_only() -> None:
    assert kinds("conv2d_batch_norm") == ["Transpose", "Conv2d", "Sigmoid", "Multiply", "Transpose"]


def test_clamps_are_part_of_what_they_follow() -> None:
    for name in ("conv2d_relu", "conv2d_relu6", "linear_relu", "add_relu"):
        assert "Clamp" not in kinds(name)


def test_permutations_are_left_to_the_reader() -> None:
    assert kinds("bmm_transposed") == ["BatchMatrixMultiply"]
    assert kinds("patches") == ["Transpose", "Conv2d", "Reshape"]


def test_operators_are_those_of_the_format() -> None:
    assert {name for case in ("gelu", "softmax") for name in kinds(case)} <= set(
        Operator.__members__
    )


@pytest.mark.parametrize("name", ["layer_norm", "group_norm", "max_pool", "conv2d_batch_norm"])
def test_decomposed_operators_are_lowered_too(name: str) -> None:
    """What `to_edge` makes of operators that `to_edge_transform_and_lower` keeps whole."""
    (case,) = (case for case in CASES if case.name == name)
    program = torch.export.export(case.module(), case.arguments()[0])
    edge = to_edge(program).to_backend(XnnpackPartitioner(heavy_only=False))
    assert outside(edge.exported_program()) == []


def test_delegation_info_counts() -> None:
    info = get_delegation_info(lowered(CASES[0]).exported_program().graph_module)
    assert info.num_delegated_subgraphs == 1


def left(model: nn.Module, x: torch.Tensor) -> tuple[int, set[str]]:
    """Return how many delegates the default makes, and why operators are outside."""
    program = torch.export.export(model.eval(), (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    rows = outside(edge.exported_program())
    return len(delegates(edge)), {reason for row in rows for reason in row.reasons.values()}


def test_what_costs_more_than_it_brings_stays_out() -> None:
    """A crossing takes longer than a layer of sixteen products, not one of millions."""
    count, reasons = left(nn.Linear(4, 4), torch.ones(1, 4))
    (reason,) = reasons
    assert count == 0
    assert re.fullmatch(
        r"XNNPACK takes about \d+ ns for its part of the program, \d+ ns of it to get there and "
        r"back, ETX's own kernels \d+ ns",
        reason,
    )
    assert left(nn.Linear(512, 512), torch.ones(64, 512)) == (1, set())


def test_what_has_no_heavy_node_stays_out() -> None:
    assert left(nn.GELU(), torch.ones(512, 512)) == (0, {NOT_WORTH_IT})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_part_has_a_cost(case: Case) -> None:
    (delegate,) = delegates(lowered(case))
    program = delegate.original_module
    nodes = [n for n in program.graph.nodes if n.op == "call_function"]
    found = cost(nodes, Constants(program).get)
    kinds_known = set(figures()["speeds"]["float32"])
    assert {TABLE[n.target].kind for n in nodes if n.target in TABLE} <= kinds_known
    assert found.inside > 0
    assert found.own > 0
    assert found.crossing >= figures()["call"] > 0


@pytest.mark.parametrize(
    "case", [case for case in CASES if case not in HALF], ids=lambda case: case.name
)
def test_what_a_result_is_said_to_equal_is_like_it(case: Case) -> None:
    """A mask that is added is not the one that says what is seen."""
    values = {node.name: node.meta.get("val") for node in export(case).graph.nodes}
    edge = lowered(case)
    inside = [delegate.original_module for delegate in delegates(edge)]
    nodes = [node for part in (edge.exported_program(), *inside) for node in part.graph.nodes]
    notes = [(node.meta.get("val"), note_of(node)) for node in nodes]
    noted = [(val, values.get(note)) for val, note in notes if isinstance(note, str)]
    kinds = [
        [(item.dtype, str(tuple(item.shape))) for item in pair]
        for pair in noted
        if isinstance(pair[1], torch.Tensor)
    ]
    assert kinds
    assert all(result == value for result, value in kinds), kinds


def test_layers_that_share_a_chain_can_be_delegates_of_their_own() -> None:
    case = next(case for case in CASES if case.name == "int8_dynamic_apart")
    module, (arguments,) = case.module(), case.arguments()
    program = torch.export.export(module, arguments)
    partitioner = XnnpackPartitioner(per_op_mode=True, heavy_only=False)
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    assert len(delegates(edge)) == 2
    buffer = edge.to_executorch(ExecutorchBackendConfig(target=None)).buffer
    found = etx_runtime.load(buffer, outputs="torch")(*arguments)
    for actual, expected in zip(found, module(*arguments), strict=True):
        assert (actual - expected).abs().max() <= case.tol * expected.abs().max()


class Rounded(nn.Module):
    """A convolution of what is quantized when it comes, in one of several forms."""

    def __init__(self, form: str) -> None:
        super().__init__()
        groups = 6 if form == "depthwise" else 1
        self.layer = nn.Conv2d(6, 12, 3, groups=groups)
        self.form = form
        self.register_buffer("integers", (self.layer.weight * 127).round().to(torch.int8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ops, bounds = torch.ops.quantized_decomposed, (-128, 127)
        if self.form == "rows":
            scale, zero = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
            q = ops.quantize_per_token(x, scale, zero, *bounds, torch.int8)
            real = ops.dequantize_per_token(q, scale, zero, *bounds, torch.int8, torch.float32)
        else:
            scale, zero = ops.choose_qparams.tensor(x, *bounds, 1e-5, torch.int8)
            q = ops.quantize_per_tensor.tensor(x, scale, zero, *bounds, torch.int8)
            real = ops.dequantize_per_tensor.tensor(q, scale, zero, *bounds, torch.int8)
        weight = self.layer.weight
        if self.form != "float":
            weight = ops.dequantize_per_tensor(self.integers, 1 / 127, 0, *bounds, torch.int8)
        return torch.conv2d(real, weight, self.layer.bias, groups=self.layer.groups)


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ("whole", None),
        ("rows", "a range for each row"),
        ("depthwise", "it is depthwise"),
        ("float", "but its weight is not"),
    ],
)
def test_convolutions_of_other_forms_stay_outside(form: str, reason: str | None) -> None:
    model, x = Rounded(form).eval(), torch.randn(1, 6, 9, 7)
    program = torch.export.export(model, (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner(heavy_only=False)])
    rows = [row for row in outside(edge.exported_program()) if "convolution" in row.operator]
    assert len(rows) == (reason is not None)
    assert reason is None or reason in str(rows[0])
    got = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")(x)
    torch.testing.assert_close(got, model(x), rtol=1e-4, atol=1e-4)
