# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of a graph of the table: refused, or run with memory reused and not, as eager."""

from __future__ import annotations

import copy
import warnings
from typing import NamedTuple

import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.plan import MemoryPlanningPass, naive
from etx_schema import EtxError, read_pte
from etx_schema.operator_names import operator_name
from promise import executed, loaded, same
from table_graphs import TableGraph
from torch import Tensor

RIGHT = ("ran", "rounded", "refused", "not exported")
MEANS = (torch.ops.aten.std_mean.correction, torch.ops.aten.var_mean.correction)


class Outcome(NamedTuple):
    """`kind`: "ran", "rounded", "refused", "not exported"; wrong are "differs" and "failed".

    "rounded": a difference of rounding that a step made large; each step alone is right.
    "refused": by the compiler, with a message of its own. "not exported": by torch.
    "failed": an exception of any other kind, of the compiler or of the runtime.
    """

    kind: str
    reason: str = ""
    kernels: tuple[str, ...] = ()


def outcome(graph: TableGraph) -> Outcome:
    """Export, lower twice, run twice and compare."""
    inputs = tuple(graph.inputs)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = torch.export.export(graph, copy.deepcopy(inputs))
        except Exception as error:
            return Outcome("not exported", first_line(error))
        try:
            reused, separate = lowered(program), lowered(program, apart())
        except EtxError as error:
            return Outcome("refused", str(error))
        except Exception as error:
            return Outcome("failed", f"{type(error).__name__} while lowering: {first_line(error)}")
        kernels = called(reused)
        try:
            rounded = compared(graph, reused, separate)
        except AssertionError as error:
            return Outcome("differs", told(error), kernels)
        except Exception as error:
            return Outcome("failed", f"{type(error).__name__}: {told(error)}", kernels)
        return Outcome("rounded" if rounded else "ran", kernels=kernels)


def compared(graph: TableGraph, reused: bytes, separate: bytes) -> bool:
    """Raise where a file gives other bits or is not eager; whether rounding grew."""
    inputs = tuple(graph.inputs)
    expected = graph(*copy.deepcopy(inputs))
    got = executed(loaded(reused), copy.deepcopy(inputs))
    again = executed(loaded(separate), copy.deepcopy(inputs))
    assert len(got) == len(again) == len(expected), "another number of results"
    for i, (a, b, binds) in enumerate(zip(got, again, graph.compared(), strict=True)):
        assert not binds or bits(a) == bits(b), f"result {i}: other bits with memory reused"
    if agree(graph, got, expected):
        return False
    every_step(graph, inputs, got)
    return True


def first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def told(error: Exception) -> str:
    return "\n".join([str(error).strip(), *getattr(error, "__notes__", ())])


def apart() -> MemoryPlanningPass:
    """Return a plan that gives every value memory of its own."""
    return MemoryPlanningPass(memory_planning_algo=naive, reuse_in_place=False)


def lowered(program: torch.export.ExportedProgram, planning: object = None) -> bytes:
    config = ExecutorchBackendConfig(memory_planning_pass=planning, target="etx")
    return to_edge(program).to_executorch(config).buffer


def called(buffer: bytes) -> tuple[str, ...]:
    """Return the names of the operators of a file."""
    plans = read_pte(buffer).program.execution_plan
    return tuple(operator_name(plan, i) for plan in plans for i in range(len(plan.operators)))


def bits(x: Tensor) -> bytes:
    if x.is_complex():
        x = torch.view_as_real(x)
    numbers = x.view(torch.int16) if x.dtype == torch.bfloat16 else x
    return numbers.contiguous().numpy().tobytes()


def agree(graph: TableGraph, got: list[Tensor], expected: tuple[Tensor, ...]) -> bool:
    """Whether results are eager's; sizes and dtypes must be."""
    for i, (actual, value) in enumerate(zip(got, expected, strict=True)):
        given, due = (actual.dtype, actual.shape), (value.dtype, value.shape)
        assert given == due, f"result {i} is {given}, expected {due}"
    try:
        for actual, value, binds in zip(got, expected, graph.compared(), strict=True):
            same(actual, value, not binds)
    except AssertionError:
        return False
    return True


def every_step(graph: TableGraph, inputs: tuple[Tensor, ...], got: list[Tensor]) -> None:
    """Return all values; each step, of the file's own, must be eager's, and the results these."""
    whole, count = copy.copy(graph), len(graph.new)
    whole.returned = list(range(count + sum(graph.counts)))
    program = torch.export.export(whole, copy.deepcopy(inputs))
    pool = executed(loaded(lowered(program, apart())), copy.deepcopy(inputs))
    place = count
    for step, results in zip(graph.steps, graph.counts, strict=True):
        expected = step.results([x.clone() for x in pool])
        for i, value in enumerate(expected):
            due = value
            if step.call.target in MEANS and i == 1 and pool[step.leaves[0].number].isinf().any():
                # Eager's running mean is NaN after an infinity.
                due = value.where(~(value.isnan() & pool[place + i].isinf()), pool[place + i])
            try:
                same(pool[place + i], due, not step.binds(i))
            except AssertionError as error:
                error.add_note(f"in {step.call.target}{step.leaves}, result {i}")
                raise
        place += results
    for actual, number, binds in zip(got, graph.returned, graph.compared(), strict=True):
        same(actual, pool[number], not binds)
