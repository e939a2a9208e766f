# SPDX-License-Identifier: BSD-3-Clause
"""Join what was recorded with what the file says of its instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from etx_schema import EtxError, PteFile, Tensor
from etx_schema._generated.program import ExecutionPlan
from etx_schema.inspect.describe_method import Method

from etx_devtools.delegated import common_module, handles_of_events
from etx_devtools.etdump import KERNEL, Run, Span, ThreadSpan
from etx_devtools.percentiles import median
from etx_devtools.profile.work import Peak, Work, work_of

MS = 1e-6
"""Milliseconds of a tick: the runtime's hosted clock counts nanoseconds."""
FIRST = 8.0
"""How many times the least the first recorded events of an execution may take beside it."""


@dataclass
class Part:
    """Something within a delegate, as its backend calls it; milliseconds of each execution."""

    name: str
    ms: list[float] = field(default_factory=list)
    module: str | None = None
    source: str | None = None
    is_known: bool = False
    """Whether the file says which of the delegated instructions it is of."""


@dataclass
class Step:
    """An instruction; milliseconds of each execution, the recording's own cost taken off.

    `module` is empty for the model itself.
    """

    index: int
    name: str
    text: str
    module: str | None
    source: str | None
    shape: str
    ms: list[float] = field(default_factory=list)
    calls: int = 0
    told: int = 0
    """How many events its delegate told, in all executions."""
    parts: dict[str, Part] = field(default_factory=dict)
    work: Work = field(default_factory=Work)
    ids: dict[str, list[int]] = field(default_factory=dict)
    """Of a delegate, the debug handles of its parts, and what these are."""
    inner: dict[int, dict[str, str]] = field(default_factory=dict)
    within: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    """Module and line of what is in a delegate, by how its backend calls it."""

    @property
    def is_known(self) -> bool:
        """Whether the file says where the instruction comes from: a line, or a module of the root.

        Tools add what they add to the root, so that it alone says nothing.
        """
        return bool(self.module or self.source)

    @property
    def known_ms(self) -> float:
        """The time whose origin is known: without parts whose instruction is not."""
        if not self.is_known:
            return 0.0
        unknown = sum(median(part.ms) for part in self.parts.values() if not part.is_known)
        return max(0.0, median(self.ms) - unknown)


@dataclass
class Profile:
    """The recorded executions of one method."""

    file: str
    method: str
    executions: int
    steps: list[Step]
    runs: list[Run]
    whole_ms: list[float]
    """Of each execution as it was recorded, all in all."""
    untraced_ms: list[float] = field(default_factory=list)
    """Of executions in between that were not recorded."""
    load_ms: float | None = None
    first_ms: float | None = None
    cost_ms: float = 0.0
    """What recording an instruction took, which is taken off."""
    inner_cost_ms: float = 0.0
    """What recording an event within a delegate took, which is taken off the delegate's time."""
    peak: Peak | None = None
    """Of this machine, where it was measured."""

    @property
    def executed(self) -> list[Run]:
        """Those of the runs that are executions of the method."""
        return _executions(self.runs, self.method)

    @property
    def total_ms(self) -> float:
        """The median of the sums over the instructions."""
        return median([sum(times) for times in zip(*(step.ms for step in self.steps), strict=True)])

    @property
    def attributed(self) -> float:
        """The share of the time whose origin the file knows, of what a delegate tells of, too."""
        total = sum(median(step.ms) for step in self.steps)
        known = sum(step.known_ms for step in self.steps)
        return known / total if total else 1.0


def profile_of(
    pte: PteFile,
    runs: Sequence[Run],
    *,
    method: str = "forward",
    file: str = "",
    tick_ms: float = MS,
    untraced_ms: Sequence[float] = (),
    cost_ms: float = 0.0,
    inner_cost_ms: float = 0.0,
) -> Profile:
    """Return the profile of recorded runs of `method` of a program.

    A tick of the device's clock is `tick_ms` milliseconds. `cost_ms` is the least that recording an
    instruction takes, `inner_cost_ms` an event within a delegate; with `untraced_ms`, of executions
    that were not recorded, they are what these took less, from half to twice the least and some
    for the first events, so that noise does not count. They are taken off.
    Errors: EtxError where the program lacks the method or a recorded instruction.
    """
    plan = _plan(pte, method)
    chosen = _executions(runs, method)
    if not chosen:
        raise EtxError(f"the dump holds no execution of method {method!r}")
    description = Method(pte, plan)
    steps = [_step(description, row) for row in description.instructions()]
    whole = [tick_ms * sum(s.ticks for s in run.spans if s.chain == -1) for run in chosen]
    loads = [run for run in runs if not run.is_execution and run.method in (None, method)]
    profile = Profile(file, method, len(chosen), steps, list(runs), whole, list(untraced_ms))
    if loads and loads[0].spans:
        profile.load_ms = tick_ms * max(span.ticks for span in loads[0].spans)
    for run in chosen:
        _add(steps, run, tick_ms)
    _take_off(profile, cost_ms, inner_cost_ms)
    return profile


def _executions(runs: Sequence[Run], method: str) -> list[Run]:
    return [run for run in runs if run.is_execution and run.method in (None, method)]


def _plan(pte: PteFile, method: str) -> ExecutionPlan:
    plans = {plan.name: plan for plan in pte.program.execution_plan}
    if method not in plans:
        known = ", ".join(map(str, plans))
        raise EtxError(f"the program has no method {method!r} (it has: {known})")
    return plans[method]


def _step(description: Method, row: dict[str, Any]) -> Step:
    names = {"delegate": "", "move": "(move)", "jump": "(jump)", "free": "(free)"}
    name = row.get("op") or names.get(row["kind"], "(unknown)")
    if row["kind"] == "delegate":
        name = str(description.plan.delegates[row["delegate"]].id)
    return Step(
        row["index"],
        name,
        row["text"],
        row.get("module", "" if "source" in row else None),
        row.get("source"),
        _shape(description, row.get("args") or []),
        work=work_of(description, name, row.get("args") or []),
        ids=row.get("ids", {}),
        inner=row.get("inner", {}),
    )


def _find_parts(steps: list[Step], run: Run) -> None:
    """Find out which instructions of a delegate its events are of."""
    names: dict[int, dict[str, None]] = {}
    for span in run.spans:
        if span.delegate_id is not None and span.chain == 0:
            names.setdefault(span.instruction, {})[str(span.delegate_id)] = None
    for index, known in names.items():
        step = steps[index] if index < len(steps) else None
        if step is None or not step.ids or known.keys() <= step.within.keys():
            continue
        for name, handles in handles_of_events([*known], step.ids).items():
            origins = [step.inner[handle] for handle in handles if handle in step.inner]
            if origins:
                module = common_module(origin.get("module", "") for origin in origins)
                step.within[name] = (module, origins[0].get("source"))


def _shape(description: Method, args: Sequence[int]) -> str:
    tensors = [i for i in args[-1:] if isinstance(description.value(i), Tensor)]
    return description.typed(tensors[0]).partition(": ")[2] if tensors else ""


def _add(steps: list[Step], run: Run, tick_ms: float) -> None:
    """Add the times of a run to its instructions."""
    for step in steps:
        step.ms.append(0.0)
    for part in run.threads:
        _step_of(steps, part)
    _find_parts(steps, run)
    for span in run.spans:
        if span.chain == -1:
            continue
        step = _step_of(steps, span)
        if span.delegate_id is not None:
            _add_part(step, span, tick_ms)
        elif span.name.startswith(KERNEL):
            _check_kernel(step, span.name.removeprefix(KERNEL))
        else:
            step.ms[-1] += tick_ms * span.ticks
            step.calls += 1


def _check_kernel(step: Step, recorded: str) -> None:
    """Refuse an event of another operator than the instruction's; its namespace is not told."""
    if recorded.rpartition("::")[2] != step.name.rpartition("::")[2]:
        raise EtxError(
            f"the dump has an event of {recorded} at instruction {step.index}, which calls "
            f"{step.name} in the program: is it another program's?"
        )


def _step_of(steps: list[Step], span: Span | ThreadSpan) -> Step:
    if not (span.chain == 0 and 0 <= span.instruction < len(steps)):
        raise EtxError(
            f"the dump has an event of instruction {span.instruction} of chain {span.chain}, "
            f"the method has {len(steps)} instructions: is it another program's?"
        )
    return steps[span.instruction]


def _add_part(step: Step, span: Span, tick_ms: float) -> None:
    step.told += 1
    module, source = step.within.get(str(span.delegate_id), (step.module, step.source))
    is_known = str(span.delegate_id) in step.within
    part = step.parts.setdefault(span.name, Part(span.name, [], module, source, is_known))
    part.ms += [0.0] * (len(step.ms) - len(part.ms))
    part.ms[-1] += tick_ms * span.ticks


def _excess(profile: Profile, least_ms: float, events: float) -> float:
    """Return how many times the least recording took, 1/2 to 2 and `FIRST` once an execution.

    `least_ms` is of an execution, which has so many events; the first of them take longer.
    """
    if not profile.untraced_ms or least_ms == 0:
        return 1.0
    extra = profile.total_ms - median(profile.untraced_ms)
    return min(max(extra / least_ms, 0.5), 2.0 + FIRST / events)


def _take_off(profile: Profile, cost_ms: float, inner_cost_ms: float) -> None:
    """Take the recording's cost off each instruction, and count calls by execution."""
    count = profile.executions
    steps = profile.steps
    least = sum(cost_ms * step.calls + inner_cost_ms * step.told for step in steps) / count
    events = max(1, sum(step.calls + step.told for step in steps) / count)
    excess = _excess(profile, least, events)
    profile.cost_ms, profile.inner_cost_ms = excess * cost_ms, excess * inner_cost_ms
    for step in steps:
        cost = (profile.cost_ms * step.calls + profile.inner_cost_ms * step.told) / count
        step.ms = [max(0.0, ms - cost) for ms in step.ms]
        step.calls = round(step.calls / count)
        for part in step.parts.values():
            part.ms += [0.0] * (count - len(part.ms))
