# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.lower.decompose import decompose
from etx_exir.passes.normalize.remove_asserts import ASSERTS, RemoveAsserts
from programs import Calls, apply, assert_like_eager, counts, edge

NAMES = {str(op) for op in ASSERTS}
COUNTS = torch.tensor([1, 2])


def ones(x):
    n = x.sum().item()
    torch._check(n >= 0)
    torch._check(n < 5)
    return torch.zeros(n) + 1


def test_nothing_is_checked_any_more():
    program = decompose(torch.export.export(Calls(ones), (COUNTS,)))
    assert set(counts(program)) & NAMES
    apply(RemoveAsserts(), program)
    assert not set(counts(program)) & NAMES
    assert_like_eager(program, Calls(ones), (COUNTS,))


def test_what_was_checked_bounds_the_size():
    program = edge(Calls(ones), (COUNTS,))
    (bound,) = {(r.lower, r.upper) for r in program.range_constraints.values()}
    assert bound == (0, 4)


def test_checks_in_branches_go_too():
    def function(x):
        return torch.cond(x.sum() > 0, lambda x: x.to(x.dtype).sin(), lambda x: x.cos(), (x,))

    program = edge(Calls(function), (torch.randn(3),))
    assert not set(counts(program)) & NAMES
