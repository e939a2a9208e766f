# SPDX-License-Identifier: BSD-3-Clause
"""Functions that torch writes as several are one operator for target etx alone."""

import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from on_device import assert_same, export, on_device, operators
from torch.nn import functional as F

torch.manual_seed(0)
X = torch.tensor([-torch.inf, -200.0, -3.0, -0.0, 0.5, 3.0, 90.0, torch.nan]).repeat(4)
X[8:] += torch.randn(24)
FUSED = {
    "silu": (F.silu, "silu"),
    "silu by hand": (lambda x: x * torch.sigmoid(x), "silu"),
    "silu by hand, gate first": (lambda x: torch.sigmoid(x) * x, "silu"),
    "hardsigmoid": (F.hardsigmoid, "hardsigmoid"),
    "hardswish": (F.hardswish, "hardswish"),
    "hardsigmoid by hand": (lambda x: F.relu6(x + 3) / 6, "hardsigmoid"),
    "hardsigmoid by hand, times": (lambda x: F.relu6(x + 3.0) * (1 / 6), "hardsigmoid"),
    "hardswish by hand": (lambda x: x * F.hardsigmoid(x), "hardswish"),
    "hardswish by hand, of relu6": (lambda x: x * (F.relu6(x + 3) / 6), "hardswish"),
    "hardswish by hand, divided last": (lambda x: x * F.relu6(x + 3) / 6, "hardswish"),
}
LEFT = {
    "the gate is returned": lambda x: [g := torch.sigmoid(x), x * g],
    "the gate of another": lambda x: x * torch.sigmoid(x + 1),
    "the gate is broadcast": lambda x: x.view(4, 8) * torch.sigmoid(x.view(4, 8)[:1]),
    "another clamp": lambda x: (x / 6 + 0.5).clamp(0, 2),
    "another shift": lambda x: F.relu6(x + 2) / 6,
    "the sum is returned": lambda x: [s := x + 3, F.relu6(s) / 6],
    "another slope": lambda x: torch.rsub(x, 0.5, alpha=-0.2).clamp(0, 1),
}


@pytest.mark.parametrize("case", FUSED)
def test_is_one_operator(case):
    function, name = FUSED[case]
    edge = to_edge(export(function, (X,)))
    theirs = edge.to_executorch(ExecutorchBackendConfig(target="executorch"))
    ours = edge.to_executorch()
    assert operators(ours.buffer) == [f"aten::{name}.out"]
    assert f"aten::{name}.out" not in operators(theirs.buffer)
    for manager in (ours, theirs):
        assert_same(etx_runtime.load(manager.buffer)(*on_device((X,))), function(X))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("case", FUSED)
def test_of_other_dtypes_rounds_once(case, dtype):
    function, name = FUSED[case]
    x = torch.linspace(-8, 8, 64).to(dtype)
    buffer = to_edge(export(function, (x,))).to_executorch().buffer
    assert operators(buffer) == [f"aten::{name}.out"]
    method = etx_runtime.Runtime.get().load_program(buffer).load_method("forward")
    (got,) = method.execute([x])
    exact = function(x.double())
    error = (torch.as_tensor(got).double() - exact).abs()
    assert (error <= torch.finfo(dtype).eps * exact.abs().clamp(min=1e-3)).all()


@pytest.mark.parametrize("case", LEFT)
def test_is_left(case):
    program = export(LEFT[case], (X,))
    buffer = to_edge(program).to_executorch().buffer
    fused = {f"aten::{name}.out" for name in ("silu", "hardsigmoid", "hardswish")}
    assert not fused & set(operators(buffer))
    assert_same(etx_runtime.load(buffer)(*on_device((X,))), LEFT[case](X))
