# SPDX-License-Identifier: BSD-3-Clause
"""Random programs over branches, loops, state and dynamic shapes against eager mode.

Programs that torch.export itself refuses do not count.
"""

from __future__ import annotations

import copy

import pytest
import torch
from etx_exir import to_edge
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from interpreter import Method
from memory_checker import replay
from promise import drawn
from random_programs import ALL, random_program, seeded_program
from running import SEPARATE, assert_same, emitted, plan_of, reread

PROGRAMS = drawn("ETX_RANDOM_PROGRAMS", 6)
torch_refuses = (
    torch._dynamo.exc.TorchDynamoException,
    torch._dynamo.exc.UserError,
)
"""What torch.export raises for control flow that it cannot capture."""


def check(program):
    """Export, emit and run a program; all calls in a row must give what eager mode gives."""
    eager = copy.deepcopy(program.module)
    expected = [[x.clone() for x in eager(*copy.deepcopy(call))] for call in program.calls]
    try:
        exported = torch.export.export(
            program.module, program.calls[0], dynamic_shapes=program.dynamic_shapes
        )
    except torch_refuses:
        return False
    edge = to_edge(exported).exported_program()
    pte = emitted(edge).pte
    method = Method(reread(pte))
    for call, outputs in zip(program.calls, expected, strict=True):
        assert_same(method.execute(*call), outputs)
    apart = plan_of(emitted(edge, SEPARATE).pte)
    replay(plan_of(pte), apart, method.jumps, len(program.calls))
    return True


@settings(
    max_examples=PROGRAMS, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
@given(st.data())
def test_agrees_with_eager(data):
    program = random_program(lambda low, high: data.draw(st.integers(low, high)), 5)
    note(program.module.text)
    assume(check(program))


@pytest.mark.parametrize("operator", ALL)
def test_generator_writes_each_operator(operator):
    program = seeded_program(1, (operator,))
    assert f"{operator}(" in program.module.text


def test_a_wrong_result_is_noticed(monkeypatch):
    right = Method.execute
    monkeypatch.setattr(Method, "execute", lambda *args: [x + 1 for x in right(*args)])
    with pytest.raises(AssertionError):
        check(seeded_program(1))
