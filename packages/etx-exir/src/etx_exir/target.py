# SPDX-License-Identifier: BSD-3-Clause
"""Does a program only use what its target has? All that is missing is reported at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import torch
from etx_schema import EtxError, Problem, PteFile, Target
from etx_schema.problem import Origins, grouped, report
from torch._ops import OpOverload

from etx_exir.decompose import decomposition_table
from etx_exir.targets import portable

Others = Iterable[Target] | None


class UnsupportedError(EtxError):
    """A program needs what its target lacks; `problems` has one entry an instruction."""

    def __init__(self, title: str, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join([title, *report(problems)]))


def load_target(target: str | Target) -> Target:
    """Return a target by name or path; `portable` is there even when nothing is installed."""
    if isinstance(target, Target):
        return target
    return Target.load(target, {"portable": portable()})


def check_target(pte: PteFile, target: str | Target, others: Others = None) -> None:
    """Raise with everything that `pte` needs and `target` lacks.

    Advice names the `others` that have it: the installed targets, unless they are given.
    """
    wanted = load_target(target)
    problems = _advised(wanted.check(pte, others), Origins.of(pte.named_data))
    if problems:
        count = len(grouped(problems))
        what = "1 thing is" if count == 1 else f"{count} things are"
        raise UnsupportedError(
            f"the program cannot run on target {wanted.name!r}, {what} missing:", problems
        )


def _advised(problems: Sequence[Problem], origins: Origins) -> list[Problem]:
    """Add what only the compiler knows: how the operator could be decomposed."""
    if not any(problem.kind == "operator" for problem in problems):
        return list(problems)
    table: Mapping[object, Callable[..., object]] = decomposition_table()
    advised = []
    for problem in problems:
        if problem.kind == "operator" and problem.instruction is not None:
            op = origins.get(problem.method, problem.instruction).get("op", "")
            advice = _decomposition(op, table)
            hint = "; ".join(filter(None, (advice, problem.hint)))
            problem = replace(problem, hint=hint)
        advised.append(problem)
    return advised


def _decomposition(name: str, table: Mapping[object, Callable[..., object]]) -> str:
    op = _overload(name)
    if op is None:
        return ""
    if op in table:
        return f"leave torch.ops.{name} out of preserve_ops, then it is decomposed"
    if op in torch._decomp.decomposition_table:
        return (
            "decompose it before lowering: program.run_decompositions("
            f"torch._decomp.get_decompositions([torch.ops.{name}]))"
        )
    return ""


def _overload(name: str) -> OpOverload | None:
    """Return the operator `namespace.name.overload`, None when there is no such one."""
    found: object = torch.ops
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, OpOverload) else None
