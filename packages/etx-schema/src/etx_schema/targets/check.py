# SPDX-License-Identifier: BSD-3-Clause
"""Compare a program with a target: everything that it needs and the target lacks, with advice."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from etx_schema._generated.program import (
    DelegateCall,
    ExecutionPlan,
    KernelCall,
    OptionalTensorList,
    Tensor,
    TensorList,
)
from etx_schema.entry_points import contributions
from etx_schema.operator_names import operator_name
from etx_schema.problem import DEBUG_KEY, Origins, Problem
from etx_schema.pte import PteFile
from etx_schema.targets.takes import Misfit, misfit
from etx_schema.targets.target import ARENAS, GROUP, Target, installed_targets

FLOATS = ("float32", "float64")
WIDER = {
    "bool": ("uint8", "int8", "int16", "int32", "int64", *FLOATS),
    "uint8": ("int16", "uint16", "int32", "uint32", "int64", "uint64", *FLOATS),
    "int8": ("int16", "int32", "int64", *FLOATS),
    "uint16": ("int32", "uint32", "int64", "uint64", *FLOATS),
    "int16": ("int32", "int64", *FLOATS),
    "uint32": ("int64", "uint64", "float64", "int32"),
    "int32": ("int64", "float64", "float32"),
    "uint64": ("int64", "float64"),
    "int64": ("int32", "float64", "float32"),
    "float16": ("float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64", "float16"),
    "float64": ("float32",),
    "complex32": ("complex64", "complex128"),
    "complex64": ("complex128",),
    "complex128": ("complex64",),
}

PEER = "executorch"
NO_OPERATOR = "rewrite the model without it, or delegate it to a backend"
NO_BACKEND = (
    "install the package of the backend, which brings its target, or lower the model without this "
    "backend"
)


def check(pte: PteFile, target: Target, others: Iterable[Target] | None = None) -> list[Problem]:
    """Return what `pte` needs and `target` lacks: first limits of a method, then instructions."""
    advice = _Advice(target, others)
    problems = list(_stored(pte, target))
    origins = Origins.of(pte.named_data)
    for plan in pte.program.execution_plan:
        problems += _Method(plan, target, origins, advice).problems()
    return problems


def _stored(pte: PteFile, target: Target) -> Iterator[Problem]:
    limit = target.limits.get("max_data_bytes")
    blobs = [*pte.constants, *pte.mutable_data, *pte.delegates]
    blobs += [blob.data for key, blob in pte.named_data.items() if key != DEBUG_KEY]
    size = sum(memoryview(blob).nbytes for blob in blobs)
    if limit is not None and size > limit:
        yield Problem(
            f"the file stores {size:,} bytes of data, target {target.name!r} takes at most "
            f"{limit:,}",
            hint="quantize the weights, or store them in a .ptd file",
            kind="max_data_bytes",
        )


class _Method:
    """One method against one target."""

    def __init__(
        self, plan: ExecutionPlan, target: Target, origins: Origins, advice: _Advice
    ) -> None:
        self.plan = plan
        self.target = target
        self.origins = origins
        self.advice = advice
        self.name = plan.name or ""

    def problems(self) -> Iterator[Problem]:
        yield from self.arenas()
        yield from self.ranks()
        limit = self.target.limits.get("max_instructions")
        for chain in self.plan.chains:
            count = len(chain.instructions)
            if limit is not None and count > limit:
                yield Problem(
                    f"it has {count:,} instructions, target {self.target.name!r} takes at most "
                    f"{limit:,}",
                    self.name,
                    hint="delegate parts of the model, or split it into several methods",
                    kind="max_instructions",
                )
            for i, instruction in enumerate(chain.instructions):
                call = instruction.instr_args
                if isinstance(call, KernelCall):
                    yield from self.kernel(i, call)
                elif isinstance(call, DelegateCall):
                    yield from self.delegate(i, call)

    def at(
        self,
        i: int | None,
        message: str,
        hint: str,
        kind: str,
        subject: str = "",
        operator: str = "",
    ) -> Problem:
        """Return a problem of an instruction, with what the file says of its origin."""
        origin = {} if i is None else self.origins.get(self.name, i)
        module, source = origin.get("module", ""), origin.get("source", "")
        return Problem(message, self.name, i, module, source, hint, kind, subject, operator)

    def arenas(self) -> Iterator[Problem]:
        capacities = self.target.limits.get(ARENAS)
        if capacities is None:
            return
        name = self.target.name
        for i, size in enumerate(self.plan.non_const_buffer_sizes[1:]):
            if i >= len(capacities):
                text = f"it plans {size:,} bytes in arena {i + 1}, target {name!r} has "
                text += f"{len(capacities)} arenas"
                hint = "plan the memory with fewer memory ids"
            elif capacities[i] is not None and size > capacities[i]:
                text = f"arena {i + 1} takes {size:,} bytes, target {name!r} has {capacities[i]:,}"
                hint = "plan with other memory ids, or use smaller inputs or dtypes"
            else:
                continue
            if size:
                yield Problem(text, self.name, hint=hint, kind=ARENAS, subject=str(i + 1))

    def ranks(self) -> Iterator[Problem]:
        limit = self.target.limits.get("max_rank")
        if limit is None:
            return
        users = self.users()
        for index, value in enumerate(self.plan.values):
            if isinstance(value.val, Tensor) and len(value.val.sizes) > limit:
                yield self.at(
                    users.get(index),
                    f"value {index} has rank {len(value.val.sizes)}, target "
                    f"{self.target.name!r} takes at most {limit}",
                    "merge dimensions with reshape or flatten",
                    "max_rank",
                    str(index),
                )

    def users(self) -> dict[int, int]:
        """Return the first instruction that each value is an argument of, lists looked into."""
        found: dict[int, int] = {}
        for chain in self.plan.chains:
            for i, instruction in enumerate(chain.instructions):
                for arg in getattr(instruction.instr_args, "args", ()):
                    value = self.plan.values[arg].val if 0 <= arg < len(self.plan.values) else None
                    lists = isinstance(value, (TensorList, OptionalTensorList))
                    for index in value.items if lists else [arg]:  # type: ignore[union-attr]
                        found.setdefault(index, i)
        return found

    def kernel(self, i: int, call: KernelCall) -> Iterator[Problem]:
        name = operator_name(self.plan, call.op_index)
        support = self.target.operators.get(name)
        if support is None:
            text = f"target {self.target.name!r} has no operator {name}"
            yield self.at(i, text, self.advice.operator(name), "operator", name)
            return
        found = misfit(support, self.plan, call)
        if found is not None:
            text = f"target {self.target.name!r} has {name} {found}"
            hint = self.advice.dtype(name, found, self.plan, call)
            yield self.at(i, text, hint, "dtype", found.given, name)

    def delegate(self, i: int, call: DelegateCall) -> Iterator[Problem]:
        if not 0 <= call.delegate_index < len(self.plan.delegates):
            return
        backend = self.plan.delegates[call.delegate_index].id or ""
        if backend not in self.target.backends:
            known = ", ".join(self.target.backends) or "none"
            text = f"target {self.target.name!r} has no backend {backend} (it has: {known})"
            yield self.at(i, text, self.advice.backend(backend), "backend", backend)


class _Advice:
    """What to do about something that is missing."""

    def __init__(self, target: Target, others: Iterable[Target] | None) -> None:
        self.target = target
        self._others = others

    @cached_property
    def others(self) -> list[Target]:
        """The targets that are asked for what is missing."""
        given = installed_targets().values() if self._others is None else self._others
        return [other for other in given if other.name != self.target.name]

    def operator(self, name: str) -> str:
        """Say where a missing operator is, and else how to do without it."""
        have = [other.name for other in self.others if name in other.operators]
        if not have and name in self.target.elsewhere:
            have = [self.target.elsewhere[name]]
        parts = [f"choose target {' or '.join(have)}, which has it"] if have else []
        if alike := _alike(name, self.target.operators):
            parts.append(f"use a form that it has ({', '.join(alike)})")
        if name.partition("::")[0] in namespaces(self.target):
            parts.append(NO_OPERATOR)
            return "; ".join(parts)
        row = mine(self.target.name, [name])
        parts.append(f"if the device registers the kernel, check against a .json file with {row}")
        return "; ".join(parts)

    def dtype(self, name: str, found: Misfit, plan: ExecutionPlan, call: KernelCall) -> str:
        """Name the dtype to cast to, or the target that has this one."""
        have = []
        for other in self.others:
            row = other.operators.get(name)
            if row is not None and misfit(row, plan, call) is None:
                have.append(other.name)
        wider = wider_dtype(found.given, found.allowed)
        subject = found.argument or "the operands"
        parts = [f"cast {subject} to {wider} (`.to(torch.{wider})`)"] if wider else []
        parts += [f"choose target {' or '.join(have)}, which takes {found.given}"] if have else []
        return "; ".join(parts or ["rewrite the model without it, or delegate it to a backend"])

    def backend(self, name: str) -> str:
        """Name the targets that have a backend, and how to state that the device has it."""
        found = [other for other in self.others if name in other.backends]
        have = [other.name for other in found if PEER not in other.runtime]
        own = self.target.name
        if found and not have:
            peer = f"ExecuTorch {found[0].runtime[PEER]}"
            return f"{peer} has it (--target {found[0].name}); to run it with ETX, {NO_BACKEND}"
        if have:
            return f"choose target {own}+{have[0]} if the device has both, else {NO_BACKEND}"
        row = mine(own, (), [name])
        return f"{NO_BACKEND}; if the device has it, check against a .json file with {row}"


def advise(
    operators: Iterable[str], backends: Iterable[str], known: Collection[str]
) -> Iterator[str]:
    """Say what to do on a machine that has the kernels `known` and lacks these.

    No target is read: the package that offers it may be a compiler.
    """
    for name in operators:
        alike = _alike(name, known)
        form = f"use a form that is here ({', '.join(alike)}); " if alike else ""
        yield f"{name}: {form}{NO_OPERATOR}"
    if list(backends):
        yield NO_BACKEND
    names = " --target ".join(entry.name for entry in contributions(GROUP))
    if names:
        yield f"`etx check FILE --target {names}` lists all that is missing, with its lines"


def _alike(name: str, operators: Iterable[str]) -> list[str]:
    """Return the other overloads of an operator."""
    prefix = name.partition(".")[0] + "."
    return sorted(op for op in operators if f"{op}.".startswith(prefix))


def wider_dtype(dtype: str, dtypes: Sequence[str]) -> str | None:
    """Return the one of `dtypes` that stands best for `dtype`, None when none can."""
    return next((each for each in WIDER.get(dtype, ()) if each in dtypes), None)


def mine(base: str, operators: Iterable[str] = (), backends: Iterable[str] = ()) -> str:
    """Return a target file for a device that has these besides what target `base` has."""
    document: dict[str, object] = {"name": "mine", "extends": [base]}
    rows: dict[str, object] = {name: {} for name in operators}
    if rows:
        document["operators"] = rows
    if names := list(backends):
        document["backends"] = names
    return json.dumps(document)


def namespaces(target: Target) -> set[str]:
    """Return the namespaces whose operators the target knows."""
    return {name.partition("::")[0] for name in target.operators} | {"aten"}
