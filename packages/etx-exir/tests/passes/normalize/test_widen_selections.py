# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from detection import boxes_and_scores, torchvision_operators
from etx_exir.passes.normalize.widen_selections import WidenSelections
from programs import Calls, apply, assert_like_eager, core

MASK = torch.tensor([[True], [False], [True], [True]])


def upper(program, target=torch.ops.aten.masked_select.default):
    (node,) = program.graph.find_nodes(op="call_function", target=target)
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


@pytest.fixture
def nms():
    with torchvision_operators():
        yield torch.ops.torchvision.nms


def test_no_more_boxes_stay_than_there_are(nms):
    module, inputs = Calls(lambda boxes, scores: nms(boxes, scores, 0.5)), boxes_and_scores(9)
    program = core(module, inputs)
    assert upper(program, nms.default) > 2**31, "torch knows no bound"
    apply(WidenSelections(), program)
    assert upper(program, nms.default) == 9
    assert not WidenSelections().run(program)
    count = torch.export.Dim("count", max=20)
    program = core(module, inputs, (({0: count}, {0: count}),))
    apply(WidenSelections(), program)
    assert upper(program, nms.default) == 20


def test_a_check_of_fewer_boxes_stays(nms):
    def first(boxes, scores):
        kept = nms(boxes, scores, 0.5)
        torch._check(kept.shape[0] <= 6)
        return kept

    program = core(Calls(first), boxes_and_scores(9))
    assert not WidenSelections().run(program)
    assert upper(program, nms.default) == 6
