# SPDX-License-Identifier: BSD-3-Clause
"""What a device can run: operators with their dtypes, backends, limits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etx_schema._generated.program import (
    DelegateCall,
    ExecutionPlan,
    KernelCall,
    Tensor,
    TensorList,
)
from etx_schema.dtypes import DTYPES, dtype_name
from etx_schema.entry_points import contributions
from etx_schema.errors import TargetError
from etx_schema.problem import Origins, Problem
from etx_schema.pte import PteFile

GROUP = "etx.targets"
_DTYPE_NAMES = {name for name, _ in DTYPES.values()}
_LIMITS = ("max_rank",)


@dataclass(frozen=True)
class Target:
    """A device's abilities, as its JSON file states them."""

    name: str
    operators: Mapping[str, Mapping[str, Any]]
    description: str = ""
    version: str = ""
    backends: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    runtime: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, name_or_path: str | os.PathLike[str]) -> Target:
        """Load a target by the name under which a package offers it, or from a JSON file."""
        text = os.fspath(name_or_path)
        if text.endswith(".json") or os.sep in text:
            return cls._read(Path(text))
        paths = target_paths()
        if text not in paths:
            known = ", ".join(paths) or "none (install etx-exir or a kernel package)"
            raise TargetError(f"no target {text!r}; installed: {known}; or give a .json file")
        return cls._read(paths[text])

    @classmethod
    def _read(cls, path: Path) -> Target:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise TargetError(f"cannot read target {path}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise TargetError(f"target {path} is no JSON: {error}") from error
        try:
            return cls.parse(document)
        except TargetError as error:
            raise TargetError(f"target {path}: {error}") from None

    @classmethod
    def parse(cls, document: object) -> Target:
        """Build a target from a JSON document; raise TargetError naming what is wrong in it."""
        if not isinstance(document, dict):
            raise TargetError("expected an object")
        known = {"name", "description", "version", "runtime", "operators", "backends", "limits"}
        for key in document:
            if key not in known:
                raise TargetError(f"unknown key {key!r}; expected {', '.join(sorted(known))}")
        name = document.get("name")
        if not isinstance(name, str) or not name:
            raise TargetError("name: expected a string")
        backends = document.get("backends", [])
        if not isinstance(backends, list) or not all(isinstance(b, str) for b in backends):
            raise TargetError("backends: expected a list of strings")
        limits = _object(document, "limits")
        for key, value in limits.items():
            if key not in _LIMITS or not isinstance(value, int):
                raise TargetError(f"limits: {key!r}: expected an integer for {', '.join(_LIMITS)}")
        return cls(
            name=name,
            operators=_operators(_object(document, "operators")),
            description=str(document.get("description", "")),
            version=str(document.get("version", "")),
            backends=tuple(backends),
            limits=limits,
            runtime=_object(document, "runtime"),
        )

    def check(self, pte: PteFile) -> list[Problem]:
        """Return everything that `pte` needs and this target lacks."""
        origins = Origins.of(pte.named_data)
        problems: list[Problem] = []
        for plan in pte.program.execution_plan:
            problems += self._method(plan, origins)
        return problems

    def _method(self, plan: ExecutionPlan, origins: Origins) -> Iterator[Problem]:
        method = plan.name or ""
        limit = self.limits.get("max_rank")
        for i, value in enumerate(plan.values):
            if limit is not None and isinstance(value.val, Tensor) and len(value.val.sizes) > limit:
                rank = len(value.val.sizes)
                text = f"value {i} has rank {rank}, target {self.name!r} takes at most {limit}"
                yield Problem(text, method)
        for chain in plan.chains:
            for i, instruction in enumerate(chain.instructions):
                call = instruction.instr_args
                missing = None
                if isinstance(call, KernelCall):
                    missing = self._kernel(plan, call)
                elif isinstance(call, DelegateCall):
                    missing = self._delegate(plan, call)
                if missing is not None:
                    message, hint = missing
                    origin = origins.get(method, i)
                    module, source = origin.get("module", ""), origin.get("source", "")
                    yield Problem(message, method, i, module, source, hint)

    def _kernel(self, plan: ExecutionPlan, call: KernelCall) -> tuple[str, str] | None:
        name = operator_name(plan, call.op_index)
        support = self.operators.get(name)
        if support is None:
            return (
                f"target {self.name!r} has no operator {name}",
                "rewrite the model without it, delegate it to a backend, or choose another target",
            )
        dtypes = support.get("dtypes")
        dtype = out_dtype(plan, call)
        if dtypes is None or dtype is None or dtype in dtypes:
            return None
        return (
            f"target {self.name!r} has {name} for {', '.join(dtypes)}, not for {dtype}",
            f"convert the tensor to {dtypes[0]} before it" if dtypes else "",
        )

    def _delegate(self, plan: ExecutionPlan, call: DelegateCall) -> tuple[str, str] | None:
        if not 0 <= call.delegate_index < len(plan.delegates):
            return None
        backend = plan.delegates[call.delegate_index].id
        if backend in self.backends:
            return None
        known = ", ".join(self.backends) or "none"
        return (
            f"target {self.name!r} has no backend {backend} (it has: {known})",
            "lower the model without this backend or choose another target",
        )


def target_paths() -> dict[str, Path]:
    """Return the targets that installed packages offer, by name."""
    return {entry.name: Path(entry.load()()) for entry in contributions(GROUP)}


def operator_name(plan: ExecutionPlan, index: int) -> str:
    """Return an operator's registry key: the name, and `.overload` unless that is empty."""
    if not 0 <= index < len(plan.operators):
        return f"<operator {index}>"
    operator = plan.operators[index]
    return f"{operator.name}.{operator.overload}" if operator.overload else f"{operator.name}"


def out_dtype(plan: ExecutionPlan, call: KernelCall) -> str | None:
    """Return the dtype of the (first) tensor that a call returns, None when it returns none."""
    if not call.args or not 0 <= call.args[-1] < len(plan.values):
        return None
    result = plan.values[call.args[-1]].val
    if isinstance(result, TensorList):
        first = result.items[0] if result.items else -1
        result = plan.values[first].val if 0 <= first < len(plan.values) else None
    return dtype_name(result.scalar_type) if isinstance(result, Tensor) else None


def _object(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise TargetError(f"{key}: expected an object")
    return value


def _operators(rows: dict[str, Any]) -> dict[str, Mapping[str, Any]]:
    for name, row in rows.items():
        if not isinstance(row, dict):
            raise TargetError(f"operators: {name}: expected an object")
        dtypes = row.get("dtypes", [])
        if not isinstance(dtypes, list) or not _DTYPE_NAMES.issuperset(map(str, dtypes)):
            unknown = set(map(str, dtypes)) - _DTYPE_NAMES if isinstance(dtypes, list) else dtypes
            raise TargetError(f"operators: {name}: unknown dtypes {unknown}")
    return rows
