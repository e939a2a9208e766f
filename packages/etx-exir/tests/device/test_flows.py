# SPDX-License-Identifier: BSD-3-Clause
"""Programs with control flow against eager; interop/ runs all of FLOWS on both runtimes."""

from __future__ import annotations

import pytest
import torch
from etx_exir.lower.decompose import decompose
from flows import FLOWS
from programs import counts
from running import operators, run

CHOSEN = (
    "branch_reads_an_operand_twice",
    "branch_returns_operands",
    "branch_returns_constants",
    "branches_of_run_time_size",
    "branch_chooses_the_state",
    "rotation_of_three",
    "carries_that_start_alike",
    "turns_from_a_size",
    "loop_in_a_branch_in_a_loop",
    "loop_counts_in_state",
    "scan_in_a_map_in_a_branch",
    "associative_scan_in_while",
)


@pytest.mark.parametrize("name", CHOSEN)
def test_agrees_with_eager(name):
    program = FLOWS[name]()
    run(program.module, *program.calls, dynamic_shapes=program.dynamic_shapes, checked=False)


@pytest.mark.parametrize("name", ["scan_of_no_rows", "map_of_no_rows_of_run_time_size"])
def test_loops_over_no_rows(name):
    program = FLOWS[name]()
    result = run(
        program.module, *program.calls, dynamic_shapes=program.dynamic_shapes, checked=False
    )
    assert "aten::full.out" in operators(result.pte)


def test_loops_over_some_rows_need_no_empty_result():
    program = FLOWS["scan_backwards"]()
    result = run(
        program.module, *program.calls[:2], dynamic_shapes=program.dynamic_shapes, checked=False
    )
    assert "aten::full.out" not in operators(result.pte)


def test_torch_refuses_what_is_separated_before_it_decomposes():
    for name, error in (
        ("carries_that_start_alike", "aliasing"),
        ("associative_scan_in_map", "vmap"),
    ):
        program = FLOWS[name]()
        exported = torch.export.export(program.module, program.calls[0])
        before = str(exported.graph)
        with pytest.raises(RuntimeError, match=error):
            exported.run_decompositions()
        assert not any("batch_dim" in target for target in counts(decompose(exported)))
        assert str(exported.graph) == before
