# SPDX-License-Identifier: BSD-3-Clause
"""Constants seen through what branches and loop bodies capture."""

from __future__ import annotations

import copy

import torch
from etx_exir.ir.control_flow_graphs import captures
from etx_exir.passes import PIPELINE
from etx_exir.passes.simplify.fold_constants import FoldConstants
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from flows import FLOWS
from programs import Calls, apply, assert_like_eager, core, counts
from programs import edge as lowered


def edge(name):
    program = FLOWS[name]()
    reference = copy.deepcopy(program.module)
    result = lowered(program.module, program.calls[0], program.dynamic_shapes)
    assert_like_eager(result, reference, *program.calls)
    return result


def test_expressions_of_constants_leave_loop_bodies():
    assert set(counts(edge("loop_with_constant_expressions"))) == {
        "while_loop",
        "aten.lt.Tensor",
        "aten.view_copy.default",
        "aten.linear.default",
        "aten.add.Tensor",
        "aten.add.Scalar",
    }


def test_expressions_of_constants_leave_branches_of_branches():
    names = counts(edge("branches_with_constant_expressions"))
    assert not {n for n in names if "exp" in n or "sqrt" in n or "cumsum" in n or "permute" in n}
    assert names["aten.sum.dim_IntList"] == 1, "of the condition; that of the weights is folded"


def test_batch_norm_is_fused_in_branches():
    names = counts(edge("branch_with_batch_norm"))
    assert not any("batch_norm" in name for name in names)
    assert names["aten.convolution.default"] == 2


def held_twice(self, x):
    def left(x):
        return x + self.w * 2 + self.w

    return torch.cond(x.sum() > 0, left, lambda x: x - (self.w * 2).cos(), (x,))


def test_folding_adds_captures_and_dead_code_drops_them():
    x = torch.randn(3)
    program = core(Calls(held_twice, w=torch.randn(3)), (x,))
    (before,) = captures(program.graph_module)
    assert len(before.operands) == 2
    apply(FoldConstants(), program)
    (after,) = captures(program.graph_module)
    assert len(after.operands) == 4, "w * 2 and its cosine"
    for module in after.modules:
        assert len(module.graph.find_nodes(op="placeholder")) == 4
    assert_like_eager(program, Calls(held_twice, w=program.state_dict["w"]), (x,), (-x,))
    for item in PIPELINE:
        item.run(program)
    (last,) = captures(program.graph_module)
    assert len(last.operands) == 4, "all are read by one branch or the other"


def unused(self, x):
    return torch.cond(x.sum() > 0, lambda x: x + (self.w + 1), lambda x: x - (self.w + 1), (x,))


def test_what_no_branch_reads_any_more_is_neither_captured_nor_stored():
    x = torch.randn(3)
    program = core(Calls(unused, w=torch.randn(3)), (x,))
    FoldConstants().run(program)
    apply(RemoveDeadCode(), program)
    assert "w" not in program.state_dict
    assert len(program.graph.find_nodes(op="placeholder")) == 3, "one w + 1 a branch, and x"
