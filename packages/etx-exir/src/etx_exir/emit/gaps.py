# SPDX-License-Identifier: BSD-3-Clause
"""All that keeps programs from a file: noted where it is met, told at once at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from etx_schema import EtxError, KernelCall, Problem, PteFile, Target
from etx_schema.problem import grouped
from torch.fx import Node

from etx_exir.errors import EmitError, PlanError, UnboundedError
from etx_exir.ir.provenance import module_path, source_line
from etx_exir.ir.stand_in import called
from etx_exir.target.check import UnsupportedError, missing

ABOUT_NODES = ("operator", "dtype", "backend")
"""Kinds of problems that sizes which are not what they will be do not bring about."""


class Gaps:
    """The problems of the methods of one file, and the error that each of them is."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.errors: list[EtxError] = []
        self.stand_ins: set[tuple[str, int]] = set()

    def __bool__(self) -> bool:
        return bool(self.problems)

    def note(self, error: EtxError, method: str, node: Node | None = None, start: str = "") -> None:
        """Keep what is wrong in `method` at `node`; its message without `start`."""
        what, advice, kind = str(error).removeprefix(f"{start}: "), "", "invalid"
        if isinstance(error, UnboundedError):
            what, advice, kind = error.what, error.advice, "size"
        if isinstance(error, PlanError):
            what, kind = what.removeprefix(f"method {method!r}: "), "memory"
        if node is not None and node.op == "call_function":
            what = f"{called(node)}: {what}"
        elif node is not None and kind == "invalid":
            what = f"{node.name}: {what}"
        self.errors.append(error)
        self.add(what, method, node, advice, kind)

    def add(
        self,
        what: str,
        method: str,
        node: Node | None,
        advice: str,
        kind: str,
        subject: str = "",
    ) -> None:
        """Keep one problem."""
        place = ("", "") if node is None else (module_path(node) or "", source_line(node))
        self.problems.append(Problem(what, method, None, *place, advice, kind, subject))

    @contextmanager
    def noting(self, method: str) -> Iterator[None]:
        """Keep what goes wrong within; what a stand-in brings about does not count."""
        try:
            yield
        except (EmitError, PlanError) as error:
            self.note(error, method)
        except Exception:
            if not self.problems:
                raise

    def refuse(
        self, pte: PteFile, target: str | Target | None, kinds: Sequence[str] = ABOUT_NODES
    ) -> NoReturn:
        """Raise with all problems, and with what `target` lacks for the rest of `pte`."""
        noted = {problem.subject for problem in self.problems if problem.subject}
        found = [] if target is None else missing(pte, target, own=True)
        for problem in found:
            known = problem.kind == "operator" and problem.subject in noted
            if problem.kind in kinds and not known and not self._is_consequence(pte, problem):
                self.problems.append(problem)
        if len(grouped(self.problems)) == len(self.errors) == 1:
            raise self.errors[0]
        if any(problem.kind != "operator" for problem in self.problems):
            raise UnsupportedError(
                "the program cannot be written to a file that runs:", self.problems
            )
        raise UnsupportedError("operators without an out variant cannot be stored:", self.problems)

    def _is_consequence(self, pte: PteFile, problem: Problem) -> bool:
        """Tell whether a dtype is missing that only a stand-in has."""
        if problem.kind != "dtype" or problem.instruction is None:
            return False
        plan = next(p for p in pte.program.execution_plan if p.name == problem.method)
        call = plan.chains[0].instructions[problem.instruction].instr_args
        assert isinstance(call, KernelCall)
        return any((problem.method, index) in self.stand_ins for index in call.args)
