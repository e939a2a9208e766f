# SPDX-License-Identifier: BSD-3-Clause
"""Compare a program with a target: everything that it needs and the target lacks, with advice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from etx_schema._generated.program import (
    DelegateCall,
    ExecutionPlan,
    KernelCall,
    OptionalTensorList,
    Tensor,
    TensorList,
)
from etx_schema.operator_names import operator_name
from etx_schema.problem import Origins, Problem, is_for_people
from etx_schema.pte import PteFile
from etx_schema.targets.advice import Advice
from etx_schema.targets.device import ARENAS, Device
from etx_schema.targets.takes import misfit


def check(pte: PteFile, target: Device, others: Callable[[], Iterable[Device]]) -> list[Problem]:
    """Return what `pte` needs and `target` lacks: first limits of a method, then instructions.

    `others` are asked for what is missing.
    """
    advice = Advice(target, others)
    problems = list(_stored(pte, target))
    origins = Origins.of(pte.named_data)
    for plan in pte.program.execution_plan:
        problems += _Method(plan, target, origins, advice).problems()
    return problems


def _stored(pte: PteFile, target: Device) -> Iterator[Problem]:
    limit = target.limits.get("max_data_bytes")
    blobs = [*pte.constants, *pte.mutable_data, *pte.delegates]
    blobs += [blob.data for key, blob in pte.named_data.items() if not is_for_people(key)]
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
        self, plan: ExecutionPlan, target: Device, origins: Origins, advice: Advice
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
