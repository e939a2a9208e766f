# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.ir.dim_order import dim_order_of
from etx_exir.ir.functional_views import COPIES
from programs import Calls, assert_like_eager, core, counts, edge

BATCH = torch.export.Dim("batch", min=1, max=16)


def test_copy_views_leaves_no_view():
    module = Calls(lambda x: x.t()[1:].unsqueeze(0).expand(2, 2, 2).select(0, 1).split(1))
    program = core(module, (torch.randn(2, 3),))
    assert not set(counts(program)) & {str(op) for op in COPIES}
    assert_like_eager(program, module, (torch.randn(2, 3),))


def test_drop_expands():
    module = Calls(lambda x: x / x.sum(-1, keepdim=True).expand_as(x))
    program = edge(module, (torch.rand(3, 4),))
    assert "aten.expand_copy.default" not in counts(program)
    assert_like_eager(program, module, (torch.rand(3, 4),))


@pytest.mark.parametrize(
    ("exponent", "name"),
    [(2, "mul.Tensor"), (0.5, "sqrt.default"), (-0.5, "rsqrt.default"), (-1, "reciprocal.default")],
)
def test_expand_powers(exponent, name):
    module = Calls(lambda x: x**exponent)
    program = edge(module, (torch.rand(3) + 0.1,))
    assert counts(program) == {f"aten.{name}": 1}
    assert_like_eager(program, module, (torch.rand(3) + 0.1,))


@pytest.mark.parametrize("shape", [(), (1,), (1, 4), (2, 1), (2, 4), (3, 2, 4)], ids=str)
def test_add_bias(shape):
    module = Calls(lambda x, b: torch.nn.functional.linear(x, torch.ones(4, 5), b))
    inputs = torch.randn(3, 2, 5)[: 3 if len(shape) == 3 else 1].squeeze(0), torch.randn(shape)
    program = edge(module, inputs)
    assert counts(program)["aten.add.Tensor"] == 1
    assert_like_eager(program, module, inputs)


def test_split_dynamic():
    module = Calls(lambda x: (*x.split(2, -1), *x.chunk(2, -1), *x[..., None].unbind(1)))
    inputs = torch.randn(3, 5)
    program = edge(module, (inputs,), (({0: BATCH},),))
    assert not {"aten.split_copy.Tensor", "aten.unbind_copy.int"} & set(counts(program))
    assert_like_eager(program, module, (inputs,), (torch.randn(7, 5),))


def test_align_index_put():
    def write(self, x, position):
        self.cache[:, position] = x
        return self.cache * 1.5

    module = Calls(write, cache=torch.zeros(1, 8, 3))
    inputs = (torch.randn(2, 3), torch.tensor([1, 4]))
    program = edge(module, inputs)
    (call,) = program.graph.find_nodes(op="call_function", target=torch.ops.aten.index_put.default)
    assert call.args[2].meta["val"].dim() == 3
    assert_like_eager(program, module, inputs, inputs)


def test_remove_asserts():
    def function(x):
        n = x.sum().item()
        torch._check(n >= 0)
        torch._check(n < 5)
        return torch.zeros(n) + 1

    program = edge(Calls(function), (torch.tensor([1, 2]),))
    assert not any("assert" in name or "constrain" in name for name in counts(program))


def test_dim_orders_are_explicit():
    module = Calls(lambda x: x.to(memory_format=torch.channels_last).relu().to(torch.float64))
    program = edge(module, (torch.randn(1, 2, 3, 4),))
    found = [n for n in program.graph.nodes if "dim_order" in str(n.target)]
    assert [node.kwargs["dim_order"] for node in found] == [[0, 2, 3, 1], [0, 2, 3, 1]]
    assert all(dim_order_of(node.meta["val"]) == (0, 2, 3, 1) for node in found)
    assert_like_eager(program, module, (torch.randn(1, 2, 3, 4),))


def test_strides_are_those_of_copies():
    program = edge(Calls(lambda x: x.permute(0, 2, 1).relu()), (torch.randn(2, 3, 4),))
    values = [n.meta["val"] for n in program.graph.nodes if n.op == "call_function"]
    assert all(value.is_contiguous() for value in values)


def test_dead_code_takes_its_constants_along():
    module = Calls(lambda self, x: (x + 1, x * self.w)[0], w=torch.ones(3))
    program = edge(module, (torch.randn(3),))
    assert not program.state_dict
    assert len(program.graph_signature.input_specs) == 1
