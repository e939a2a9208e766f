# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.passes.normalize.widen_selections import WidenSelections
from programs import Calls, apply, assert_like_eager, core

MASK = torch.tensor([[True], [False], [True], [True]])


def upper(program):
    (node,) = program.graph.find_nodes(
        op="call_function", target=torch.ops.aten.masked_select.default
    )
    return program.range_constraints[node.meta["val"].shape[0].node.expr].upper


def test_a_mask_may_select_an_element_more_than_once():
    module, inputs = Calls(torch.masked_select), (torch.randn(3), MASK)
    program = core(module, inputs)
    assert upper(program) == 3, "torch's bound, of which this selects three times as many"
    apply(WidenSelections(), program)
    assert upper(program) == 12
    assert_like_eager(program, module, inputs)


def test_symbolic_sizes_count_with_their_largest_value():
    module, rows = Calls(torch.masked_select), torch.export.Dim("rows", max=5)
    program = core(module, (torch.randn(3), MASK), ((None, {0: rows}),))
    apply(WidenSelections(), program)
    assert upper(program) == 15


def test_a_bound_that_is_large_enough_stays():
    module, inputs = Calls(torch.masked_select), (torch.randn(4, 3), MASK)
    assert not WidenSelections().run(core(module, inputs))
