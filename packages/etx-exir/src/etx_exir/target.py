# SPDX-License-Identifier: BSD-3-Clause
"""Does a program only use what its target has? All that is missing is reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from etx_schema import EtxError, Problem, PteFile, Target

from etx_exir.targets import portable

SHOWN = 3


class UnsupportedError(EtxError):
    """A program needs what its target lacks; `problems` has one entry an instruction."""

    def __init__(self, title: str, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join([title, *_grouped(problems)]))


def load_target(target: str | Target) -> Target:
    """Return a target by name or path; `portable` is there even when nothing is installed."""
    if isinstance(target, Target):
        return target
    return Target.load(portable() if target == "portable" else target)


def check_target(pte: PteFile, target: str | Target) -> None:
    """Raise with every operator, dtype and backend of `pte` that `target` lacks."""
    wanted = load_target(target)
    problems = wanted.check(pte)
    if problems:
        count = len(_by_message(problems))
        what = "1 thing is" if count == 1 else f"{count} things are"
        raise UnsupportedError(
            f"the program cannot run on target {wanted.name!r}, {what} missing:", problems
        )


def _by_message(problems: Sequence[Problem]) -> Mapping[str, list[Problem]]:
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        groups.setdefault(problem.message, []).append(problem)
    return groups


def _grouped(problems: Sequence[Problem]) -> list[str]:
    lines = []
    for message, group in _by_message(problems).items():
        lines.append(f"  {message}, used {len(group)} time{'s' * (len(group) > 1)}")
        lines += [f"    at {_place(problem)}" for problem in group[:SHOWN]]
        if len(group) > SHOWN:
            lines.append(f"    and {len(group) - SHOWN} more")
        if group[0].hint:
            lines.append(f"    what to do: {group[0].hint}")
    return lines


def _place(problem: Problem) -> str:
    place = f"method {problem.method}"
    if problem.instruction is not None:
        place += f", instruction {problem.instruction}"
    if problem.module:
        place += f", module {problem.module}"
    return place + (f", {problem.source}" if problem.source else "")
