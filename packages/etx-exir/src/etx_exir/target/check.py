# SPDX-License-Identifier: BSD-3-Clause
"""Does a program only use what its target has? All that is missing is reported at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from warnings import warn

import torch
from etx_schema import EtxError, Problem, PteFile, Target
from etx_schema.problem import Origins, grouped, report
from etx_schema.targets.advice import mine, namespaces
from etx_schema.targets.target import installed_targets
from torch._ops import OpOverload

from etx_exir.ir.targets import CARRIED, DEFAULT
from etx_exir.lower.decompose import decomposition_table

Others = Iterable[Target] | None
_TORCH = (
    "_c10d_functional _c10d_functional_autograd _dtensor _native _quantized _test aten c10d "
    "cuda debug_mode_ops debugprims export inductor inductor_prims mkl mkldnn mkldnn_prepacked "
    "onednn onnx prim prims profiler quantization quantized rngprims sparse static_runtime "
    "symm_mem torch_nn"
)
TORCH = frozenset(_TORCH.split())
"""Namespaces of torch's own operators: no device adds a kernel for one."""


class UnsupportedError(EtxError):
    """A program needs what its target lacks; `problems` has one entry an instruction."""

    def __init__(self, title: str, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join([title, *report(problems)]))


class TargetWarning(UserWarning):
    """A program needs a backend or operator that a device must add to what ETX brings."""


def load_target(target: str | Target) -> Target:
    """Return a target by name or path; the compiler carries `etx` and `executorch` itself."""
    if isinstance(target, Target):
        return target
    return Target.load(target, CARRIED)


def check_target(pte: PteFile, target: str | Target, others: Others = None) -> None:
    """Raise with everything that `pte` needs and `target` lacks.

    Advice names the `others` that have it: the installed targets, unless they are given. Devices
    of target `etx` may have more: a backend or an operator that no package of ours knows is
    only warned of, with what a target file would say.
    """
    chosen = load_target(target)
    problems = missing(pte, chosen, others)
    if problems:
        count = len(grouped(problems))
        what = "1 thing is" if count == 1 else f"{count} things are"
        raise UnsupportedError(
            f"the program cannot run on target {chosen.name!r}, {what} missing:", problems
        )


def missing(
    pte: PteFile, target: str | Target, others: Others = None, own: bool = False
) -> list[Problem]:
    """Return what `pte` needs and `target` lacks, with advice; see `check_target`.

    With `own`, what only the device can have is among it.
    """
    chosen = load_target(target)
    others = None if others is None else list(others)
    found = chosen.check(pte, others)
    if not found:
        return []
    others = list(installed_targets().values() if others is None else others)
    if chosen.name == DEFAULT and not own:
        found = _without_own(found, chosen, others)
    return _advised(found, Origins.of(pte.named_data))


def _without_own(
    problems: Sequence[Problem], target: Target, others: Sequence[Target]
) -> list[Problem]:
    """Return the problems except the user's own operators and backends, which are warned of."""
    installed = {backend for other in others for backend in other.backends}
    own: dict[str, list[str]] = {"operator": [], "backend": []}
    left = []
    for problem in problems:
        if not _is_own(problem, target):
            left.append(problem)
        elif problem.subject not in {*own[problem.kind], *installed}:
            own[problem.kind].append(problem.subject)
    if any(own.values()) and not left:
        what = [f"{kind} {name}" for kind, names in own.items() for name in names]
        warn(
            f"the device must have {', '.join(what)}; to have this checked, lower for a .json file "
            f"with {mine(target.name, own['operator'], own['backend'])}",
            TargetWarning,
            stacklevel=5,
        )
    return left


def _is_own(problem: Problem, target: Target) -> bool:
    if problem.kind != "operator":
        return problem.kind == "backend"
    return problem.subject.partition("::")[0] not in TORCH | namespaces(target)


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
