# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of a graph of the table: refused, or run with memory reused and not, as eager."""

from __future__ import annotations

import copy
import warnings
from typing import NamedTuple

import etx_runtime
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.plan import MemoryPlanningPass, naive
from etx_schema import EtxError, read_pte
from etx_schema.operator_names import operator_name
from promise import executed, loaded, same
from table_graphs import TableGraph
from torch import Tensor


class Outcome(NamedTuple):
    """`kind`: "not exported" (by torch), "refused" (by ETX, with `reason`), "ran", "turned".

    "turned": a difference of rounding that a step made large; each step alone is right.
    """

    kind: str
    reason: str = ""
    kernels: tuple[str, ...] = ()


def apart() -> MemoryPlanningPass:
    """Return a plan that gives every value memory of its own."""
    return MemoryPlanningPass(memory_planning_algo=naive, reuse_in_place=False)


def outcome(graph: TableGraph) -> Outcome:
    """Export, lower twice and run twice; raises where anything is wrong."""
    inputs = tuple(graph.inputs)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = torch.export.export(graph, copy.deepcopy(inputs))
        except Exception as error:
            return Outcome("not exported", str(error))
        try:
            reused = lowered(program)
        except EtxError as error:
            return Outcome("refused", str(error))
        expected = graph(*copy.deepcopy(inputs))
        got = executed(loaded(reused), copy.deepcopy(inputs))
        again = executed(etx_runtime.load(lowered(program, apart())), copy.deepcopy(inputs))
        kernels = called(reused)
        assert len(got) == len(again) == len(expected)
        for a, b, is_compared in zip(got, again, graph.compared(), strict=True):
            assert not is_compared or bits(a) == bits(b), "other bits where memory is not reused"
        if agree(graph, got, expected):
            return Outcome("ran", kernels=kernels)
        every_step(graph, inputs, got)
        return Outcome("turned", kernels=kernels)


def lowered(program: torch.export.ExportedProgram, planning: object = None) -> bytes:
    config = ExecutorchBackendConfig(memory_planning_pass=planning, target="etx")
    return to_edge(program).to_executorch(config).buffer


def called(buffer: bytes) -> tuple[str, ...]:
    """Return the names of the operators of a file."""
    plans = read_pte(buffer).program.execution_plan
    return tuple(operator_name(plan, i) for plan in plans for i in range(len(plan.operators)))


def bits(x: Tensor) -> bytes:
    return x.contiguous().numpy().tobytes() if x.dtype != torch.bfloat16 else bits(x.float())


def agree(graph: TableGraph, got: list[Tensor], expected: tuple[Tensor, ...]) -> bool:
    """Whether results are eager's; sizes and dtypes must be."""
    try:
        for actual, value, is_compared in zip(got, expected, graph.compared(), strict=True):
            assert (actual.shape, actual.dtype) == (value.shape, value.dtype)
            same(actual, value, not is_compared)
    except AssertionError:
        return False
    return True


def every_step(graph: TableGraph, inputs: tuple[Tensor, ...], got: list[Tensor]) -> None:
    """Return all values; each step, of the file's own, must be eager's, and the results these."""
    whole, count = copy.copy(graph), len(inputs) + len(graph.constants)
    whole.returned = list(range(count + sum(graph.counts)))
    program = torch.export.export(whole, copy.deepcopy(inputs))
    pool = executed(loaded(lowered(program, apart())), copy.deepcopy(inputs))
    place = count
    for step, results in zip(graph.steps, graph.counts, strict=True):
        expected = step.results([x.clone() for x in pool])
        for i, value in enumerate(expected):
            try:
                same(pool[place + i], value, not step.is_compared(i))
            except AssertionError as error:
                error.add_note(f"in {step.call.target}{step.leaves}, result {i}")
                raise
        place += results
    for actual, number, is_compared in zip(got, graph.returned, graph.compared(), strict=True):
        same(actual, pool[number], not is_compared)
