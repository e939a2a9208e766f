# SPDX-License-Identifier: BSD-3-Clause
"""Results take the memory of arguments where the target's kernel may overwrite them."""

from __future__ import annotations

import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.target import load_target
from etx_schema import read_pte
from etx_schema.targets.rows import in_place
from on_device import assert_same, on_device
from programs import Calls
from running import operators, plan_of

X, Y = torch.rand(3, 4) + 0.5, torch.rand(3, 4) + 0.5
BITS = X > 1
SHARED = {
    "expm1": (torch.expm1, (X,)),
    "log1p": (torch.log1p, (X,)),
    "sign": (torch.sign, (X,)),
    "tan": (torch.tan, (X,)),
    "atan2": (torch.atan2, (X, Y)),
    "rsub": (lambda x: 2 - x, (X,)),
    "pow": (torch.pow, (X, Y)),
    "remainder": (torch.remainder, (X, Y)),
    "logical_and": (torch.logical_and, (BITS, ~BITS)),
    "logical_not": (torch.logical_not, (BITS,)),
}
BOTH = ("expm1", "log1p", "sign", "tan", "logical_not")


def lowered(function, inputs, target):
    exported = torch.export.export(Calls(function), inputs)
    config = ExecutorchBackendConfig(target=target)
    return read_pte(to_edge(exported).to_executorch(config).buffer)


def overwriting(pte):
    """Return the calls whose result lies on an argument."""
    plan = plan_of(pte)
    found = []
    for call in (i.instr_args for i in plan.chains[0].instructions):
        places = [getattr(plan.values[index].val, "allocation_info", None) for index in call.args]
        if places[-1] in places[:-2]:
            found.append(call)
    return found


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("target", ["etx", "executorch"])
def test_results_lie_on_arguments(name, target):
    function, inputs = SHARED[name]
    pte = lowered(lambda x, *rest: function(function(x, *rest), *rest), inputs, target)
    assert bool(overwriting(pte)) is (target == "etx" or name in BOTH)


@pytest.mark.parametrize("name", SHARED)
def test_one_operator_between_permutes(name):
    function, inputs = SHARED[name]

    def between(*tensors):
        return function(*(x.mT for x in tensors)).mT

    assert len(operators(lowered(between, inputs, "etx"))) == 1


def test_only_what_is_put_into_is_put_into_in_place():
    """The rows that are put have the size of the whole as well, and nobody else reads them."""

    def put(x, rows, at):
        whole = x + 1
        return torch.ops.aten.index_put(whole, [at], rows * 2), whole * 3

    inputs = torch.rand(3, 4), torch.rand(3, 4), torch.tensor([2, 0, 1])
    program = to_edge(torch.export.export(Calls(put), inputs)).to_executorch()
    found = etx_runtime.load(program.buffer)(*on_device(inputs))
    assert_same(found, put(*inputs))


def test_targets_state_it():
    etx, both = (load_target(name).operators for name in ("etx", "executorch"))
    for name, row in both.items():
        assert not in_place(row) or in_place(etx[name])
    assert in_place(both["aten::exp.out"])
    assert not in_place(both["aten::atan2.out"])
    assert not in_place(etx["aten::permute_copy.out"])
