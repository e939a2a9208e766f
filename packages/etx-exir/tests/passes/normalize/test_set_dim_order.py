# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.ir.dim_order import dim_order_of
from etx_exir.passes.normalize.set_dim_order import SetDimOrder
from programs import Calls, apply, assert_like_eager, core, edge

IMAGE = torch.randn(1, 2, 3, 4)
LAST = torch.channels_last


def test_dim_orders_are_explicit():
    module = Calls(lambda x: x.to(memory_format=LAST).relu().to(torch.float64))
    program = edge(module, (IMAGE,))
    found = [n for n in program.graph.nodes if "dim_order" in str(n.target)]
    assert [node.kwargs["dim_order"] for node in found] == [[0, 2, 3, 1], [0, 2, 3, 1]]
    assert all(dim_order_of(node.meta["val"]) == (0, 2, 3, 1) for node in found)
    assert_like_eager(program, module, (IMAGE,))


def test_a_copy_keeps_the_order_of_its_source():
    module = Calls(lambda x: x.clone())
    program = core(module, (IMAGE.contiguous(memory_format=LAST),))
    apply(SetDimOrder(), program)
    (call,) = (n for n in program.graph.nodes if n.op == "call_function")
    assert call.kwargs == {"dim_order": [0, 2, 3, 1]}


def test_the_format_of_a_plain_new_tensor_is_left_out():
    module = Calls(lambda x: torch.ones_like(x, memory_format=torch.contiguous_format) + x)
    program = core(module, (IMAGE,))
    apply(SetDimOrder(), program)
    assert not any("memory_format" in node.kwargs for node in program.graph.nodes)
    assert_like_eager(program, module, (IMAGE,))
