# SPDX-License-Identifier: BSD-3-Clause
"""A largest or smallest element whose index nothing reads is found without it, on both targets."""

import etx_runtime
import pytest
import torch
from etx_exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from on_device import assert_same, export, on_device, operators

torch.manual_seed(0)
X = torch.randn(3, 4, 5)
X[0, 1, 2] = torch.nan
CASES = {
    "max": lambda x: x.max(1)[0],
    "min": lambda x: x.min(-1, keepdim=True).values,
    "both": lambda x: (x.max(0).values, x.min(2).values),
    "of a number": lambda x: x.sum().max(0)[0],
}
DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8)


@pytest.mark.parametrize("target", ["etx", "executorch"])
@pytest.mark.parametrize("case", CASES)
def test_there_are_no_indices(case, target):
    edge = to_edge(export(CASES[case], (X,)))
    buffer = edge.to_executorch(ExecutorchBackendConfig(target=target)).buffer
    assert {"aten::max.dim_max", "aten::min.dim_min"}.isdisjoint(operators(buffer))
    assert_same(etx_runtime.load(buffer)(*on_device((X,))), CASES[case](X))


@pytest.mark.parametrize("dtype", [*DTYPES, torch.bool], ids=str)
def test_of_every_dtype(dtype):
    x = (X.nan_to_num() * 3).abs().to(dtype)
    buffer = to_edge(export(CASES["both"], (x,))).to_executorch().buffer
    assert operators(buffer) == ["aten::amax.out", "aten::amin.out"]
    assert_same(etx_runtime.load(buffer)(*on_device((x,))), CASES["both"](x))


def test_read_indices_stay():
    buffer = to_edge(export(lambda x: x.max(1), (X,))).to_executorch().buffer
    assert operators(buffer) == ["aten::max.dim_max"]
    buffer = to_edge(export(lambda x: x.min(1)[1], (X,))).to_executorch().buffer
    assert operators(buffer) == ["aten::min.dim_min"]


def test_it_stays_where_there_may_be_no_elements():
    for target in ("etx", "executorch"):
        config = ExecutorchBackendConfig(target=target)
        x = torch.empty(0, 3)
        buffer = to_edge(export(CASES["max"], (x,))).to_executorch(config).buffer
        assert operators(buffer) == ["aten::max.dim_max"]
        assert_same(etx_runtime.load(buffer)(*on_device((x,))), CASES["max"](x))


def test_it_stays_where_it_is_to_be_preserved():
    config = EdgeCompileConfig(preserve_ops=[torch.ops.aten.max.dim])
    edge = to_edge(export(CASES["max"], (X,)), compile_config=config)
    assert "aten.max.dim" in {str(node.target) for node in edge.exported_program().graph.nodes}
