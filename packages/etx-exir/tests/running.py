# SPDX-License-Identifier: BSD-3-Clause
"""Emit a module and compare what the file computes with eager mode."""

from __future__ import annotations

import copy

import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.emit import emit_all
from etx_exir.plan import MemoryPlanningPass, naive
from etx_schema import read_pte, serialize_pte, verify
from interpreter import Method
from memory_checker import check
from torch.utils import _pytree as pytree

SEPARATE = MemoryPlanningPass(memory_planning_algo=naive, reuse_in_place=False)


def edge(module, inputs, **options):
    return to_edge(torch.export.export(module.eval(), inputs, **options)).exported_program()


def emitted(program, planning=None, **options):
    config = ExecutorchBackendConfig(memory_planning_pass=planning, **options)
    return emit_all({"forward": program}, config)


def reread(pte):
    content = read_pte(serialize_pte(pte))
    assert verify(content) == []
    return content


def assert_same(got, expected):
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        else:
            assert a == b


def plan_of(pte, name="forward"):
    (plan,) = [p for p in pte.program.execution_plan if p.name == name]
    return plan


def operators(pte, name="forward"):
    """Return the names of the operators that the instructions call, in order."""
    plan = plan_of(pte, name)
    calls = [i.instr_args for i in plan.chains[0].instructions]
    called = [plan.operators[c.op_index] for c in calls if hasattr(c, "op_index")]
    return [f"{op.name}.{op.overload}" if op.overload else op.name for op in called]


def run(module, *calls, checked=True, planning=None, **options):
    """Export `module` with the first call's inputs; all calls must give eager's results."""
    eager = copy.deepcopy(module).eval()
    program = edge(module, calls[0], **options)
    result = emitted(program, planning)
    method = Method(reread(result.pte))
    for inputs in calls:
        outputs = method.execute(*pytree.tree_leaves(inputs))
        assert_same(outputs, pytree.tree_leaves(eager(*inputs)))
    if checked:
        reference = plan_of(emitted(program, SEPARATE).pte)
        walk_both_ways(plan_of(result.pte), reference)
    return result


def walk_both_ways(plan, reference):
    for pattern in ((False, True), (True, False), (False, False, True)):
        decisions = iter(pattern * 400)
        check(plan, reference, lambda source=decisions: next(source))
