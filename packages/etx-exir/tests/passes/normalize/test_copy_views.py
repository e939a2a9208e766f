# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.ir.ops import COPY_OF
from etx_exir.lower.decompose import decompose
from etx_exir.passes.normalize.copy_views import CopyViews
from programs import Calls, apply, assert_like_eager, counts

X = torch.randn(2, 3)


def views(x):
    return x.t()[1:].unsqueeze(0).expand(2, 2, 2).select(0, 1).split(1)


def copied(function, *inputs):
    program = decompose(torch.export.export(Calls(function), inputs))
    apply(CopyViews(), program)
    assert_like_eager(program, Calls(function), inputs)
    return program


def test_no_view_is_left():
    assert not set(counts(copied(views, X))) & {str(op) for op in COPY_OF}


def test_views_in_branches_are_copied_too():
    def function(x):
        return torch.cond(x.sum() > 0, lambda x: x[1:] + 1, lambda x: x[1:] - 1, (x,))

    assert counts(copied(function, X))["aten.slice_copy.Tensor"] == 2


def test_a_copy_is_contiguous_whatever_it_shows():
    program = copied(lambda x: (x.t() + 1, x.split(1, 1)), X)
    values = [node.meta["val"] for node in program.graph.nodes if node.target in COPY_OF.values()]
    leaves = torch.utils._pytree.tree_leaves(values)
    assert len(leaves) == 4
    assert all(leaf.is_contiguous() for leaf in leaves)
