# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.passes.simplify.merge_views import MergeViews
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from programs import Calls, assert_like_eager, core, counts


def merged(function, shape, dynamic_shapes=None):
    module, x = Calls(function), torch.randn(shape)
    program = core(module, (x,), dynamic_shapes)
    assert MergeViews().run(program)
    assert not MergeViews().run(program)
    RemoveDeadCode().run(program)
    assert_like_eager(program, module, (x,))
    return counts(program)


def test_the_outer_shape_alone_decides():
    found = merged(lambda x: x.view(6, 4).unsqueeze(0).view(3, 8).relu(), (2, 3, 4))
    assert found == {"aten.view_copy.default": 1, "aten.relu.default": 1}


def test_permutations_are_composed():
    found = merged(lambda x: x.permute(2, 0, 1).transpose(0, 1).relu(), (2, 3, 4))
    assert found == {"aten.permute_copy.default": 1, "aten.relu.default": 1}


def test_moving_ones_is_a_view():
    found = merged(lambda x: x.permute(1, 0, 2).relu(), (1, 3, 4))
    assert found == {"aten.view_copy.default": 1, "aten.relu.default": 1}


def test_one_symbolic_size_is_inferred():
    module = Calls(lambda x: x.view(x.shape[0], 3, 2).flatten(1).relu())
    batch = torch.export.Dim("batch", max=9)
    program = core(module, (torch.randn(4, 6),), (({0: batch},),))
    MergeViews().run(program)
    RemoveDeadCode().run(program)
    assert "aten.sym_size.int" not in counts(program)
    assert_like_eager(program, module, (torch.randn(4, 6),), (torch.randn(7, 6),))
