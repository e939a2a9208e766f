# SPDX-License-Identifier: BSD-3-Clause
"""Dynamic shapes: bounds, views at run time, sizes that depend on data, constraints."""

from __future__ import annotations

import json

import pytest
import torch
from etx_exir.emit import EmitError, emit
from etx_schema import Tensor, TensorShapeDynamism
from running import edge, operators, plan_of, run
from torch import nn
from torch.export import Dim


class Views(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 8)

    def forward(self, x, y):
        batch, length = x.shape[:2]
        z = self.linear(x).view(batch, length * 2, 4)
        return (z + 1).reshape(-1), x.unsqueeze(0), z.transpose(0, 1) + y, z.shape[1]


def views():
    inputs = (torch.randn(3, 5, 4), torch.randn(1, 4))
    shapes = {"x": {0: Dim("b", min=1, max=6), 1: Dim("n", max=16)}, "y": None}
    return Views(), inputs, shapes


def test_views_of_dynamic_shape_are_made_at_run_time():
    module, inputs, shapes = views()
    others = [(torch.randn(b, n, 4), inputs[1]) for b, n in ((1, 2), (6, 16), (2, 7))]
    result = run(module, inputs, *others, dynamic_shapes=shapes)
    names = operators(result.pte)
    assert "executorch_prim::et_view.default" in names
    assert "aten::view_copy.out" not in names


def test_bounds_are_stored():
    module, inputs, shapes = views()
    plan = plan_of(emit({"forward": edge(module, inputs, dynamic_shapes=shapes)}))
    x = plan.values[plan.inputs[0]].val
    assert list(x.sizes) == [6, 16, 4]
    assert x.shape_dynamism == TensorShapeDynamism.DYNAMIC_BOUND
    y = plan.values[plan.inputs[1]].val
    assert y.shape_dynamism == TensorShapeDynamism.STATIC
    unplanned = [v.val for v in plan.values if isinstance(v.val, Tensor) and not v.val.sizes]
    assert unplanned == []


def test_a_size_without_bound_is_named():
    module, inputs, _ = views()
    program = edge(module, inputs, dynamic_shapes={"x": {1: Dim("n")}, "y": None})
    with pytest.raises(EmitError, match=r"has no upper bound.*input 'x', dimension 1"):
        emit({"forward": program})


def test_a_size_divided_by_itself_has_a_bound():
    class Square(nn.Module):
        def forward(self, x):
            n = x.shape[0]
            return (x.reshape(n * n, 3) * 2).reshape(n * n // n, n, 3)

    size = Dim("n", min=0, max=6)
    program = edge(Square(), (torch.ones(4, 4, 3),), dynamic_shapes=({0: size, 1: size},))
    plan = emit({"forward": program}).program.execution_plan[0]
    assert list(plan.values[plan.outputs[0]].val.sizes) == [6, 6, 3]


class Selected(nn.Module):
    def forward(self, x):
        rows = torch.nonzero(x > 0).squeeze(1)
        count = rows.shape[0]
        torch._check(count <= 8)
        return rows + 1, x[:count] * 2


class Counted(nn.Module):
    def forward(self, n, x):
        count = n.item()
        torch._check(count >= 0)
        torch._check(count <= 4)
        return torch.ones(count) + x, count


def test_sizes_that_depend_on_data():
    run(Selected(), (torch.tensor([1.0, -1, 2, 0, 3, -4, 0, 1]),), (torch.ones(8),))
    run(Counted(), (torch.tensor(3), torch.randn(1)), (torch.tensor(1), torch.randn(1)))


class Arithmetic(nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return x.new_zeros(n * 2), n * n - n, n % 3 + 1, torch.sym_max(n, 5), n // 2, -n


def test_symbolic_integers():
    calls = [(torch.randn(n),) for n in (6, 2, 7, 10)]
    run(Arithmetic(), *calls, dynamic_shapes={"x": {0: Dim("n", min=2, max=10)}})


def test_constraints_name_the_inputs():
    class Derived(nn.Module):
        def forward(self, x, others):
            return x[: others["k"].shape[0]] + others["k"] + others["v"][1]

    batch = Dim("batch", min=2, max=32)
    inputs = (torch.randn(8), {"k": torch.randn(4), "v": [torch.randn(1), torch.randn(4)]})
    shapes = {"x": {0: 2 * batch}, "others": {"k": {0: batch}, "v": [None, {0: batch}]}}
    pte = emit({"forward": edge(Derived(), inputs, dynamic_shapes=shapes)})
    rows = json.loads(bytes(pte.named_data["etx/constraints"].data))["forward"]["inputs"]
    x, k, first, second = rows
    assert x["name"] == "x"
    (dim,) = k["dims"]
    assert (dim["min"], dim["max"], dim["divisor"]) == (2, 32, 1)
    assert x["dims"][0]["divisor"] == 2
    assert (x["dims"][0]["min"], x["dims"][0]["max"]) == (4, 64)
    assert x["dims"][0]["symbol"] == dim["symbol"] == second["dims"][0]["symbol"]
    assert first["dims"] == [None]
    assert [row["name"] for row in rows] == ["x", "others['k']", "others['v'][0]", "others['v'][1]"]
