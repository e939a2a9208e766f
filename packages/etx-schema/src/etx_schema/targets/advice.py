# SPDX-License-Identifier: BSD-3-Clause
"""What to do about something that a target lacks."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property

from etx_schema._generated.program import (
    ExecutionPlan,
    KernelCall,
)
from etx_schema.entry_points import contributions
from etx_schema.targets.device import Device
from etx_schema.targets.installed import GROUP
from etx_schema.targets.takes import Misfit, misfit

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


class Advice:
    """What to do about something that is missing."""

    def __init__(self, target: Device, others: Callable[[], Iterable[Device]]) -> None:
        self.target = target
        self._others = others

    @cached_property
    def others(self) -> list[Device]:
        """The targets that are asked for what is missing."""
        return [other for other in self._others() if other.name != self.target.name]

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


def namespaces(target: Device) -> set[str]:
    """Return the namespaces whose operators the target knows."""
    return {name.partition("::")[0] for name in target.operators} | {"aten"}
