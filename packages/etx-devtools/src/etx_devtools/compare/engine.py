# SPDX-License-Identifier: BSD-3-Clause
"""Compare one execution of a method with the exported program, instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.utils.dlpack
from etx_exir.ir.provenance import module_path, source_line
from etx_schema import (
    DelegateCall,
    EtxError,
    ExecutionPlan,
    JumpFalseCall,
    KernelCall,
    PteFile,
)
from etx_schema import Tensor as WireTensor
from etx_schema.inspect.reads_writes import effects
from etx_schema.problem import Origins
from torch import Tensor

from etx_devtools.compare.memory import Memory, UnknownValueError, initial_arenas, state_slots
from etx_devtools.compare.metrics import Distance, distance
from etx_devtools.compare.notes import Note, notes_of
from etx_devtools.compare.operators import NoOperatorError, eager_results
from etx_devtools.compare.record import Recorder
from etx_devtools.compare.reduce import Found
from etx_devtools.compare.reference import UNDEFINED, Reference, Value
from etx_devtools.compare.tolerance import reduction_length, tolerance

__all__ = ["Check", "Comparison", "Session"]

QUANTIZE = "quantized_decomposed.quantize"
Execute = Callable[[bytes, str, Sequence[Any]], list[Any]]


@dataclass
class Check:
    """One result of an instruction.

    `made` is how far it is from what eager computes of the values that the device had before,
    `arrived` from what eager has there; `allowed` is the largest absolute error that rounding
    explains. `by` says what `made` was computed with: `value` the exported program, `operator`
    torch's operator of the same name. Without `made`, `reason` says why.
    """

    instruction: int
    operator: str
    slot: int
    module: str = ""
    source: str = ""
    value: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    by: str = ""
    made: Distance | None = None
    arrived: Distance | None = None
    allowed: float = 0.0
    reason: str = ""
    cause: str = ""
    suspects: tuple[int, ...] = ()

    @property
    def wrong(self) -> bool:
        """Whether the error made here is more than rounding explains."""
        made = self.made
        return made is not None and (bool(made.problem) or not made.max_abs <= self.allowed)


@dataclass
class Comparison:
    """The checks of one call in the order of the instructions.

    `outputs`, and `state` by name, are how far what the method returns and keeps is from eager's.
    """

    method: str
    checks: list[Check]
    outputs: list[Distance | None]
    state: dict[str, Distance] = field(default_factory=dict)
    found: Found | None = None
    not_run: int = 0

    @property
    def first(self) -> Check | None:
        """The first check that is wrong."""
        return next((check for check in self.checks if check.wrong), None)


class Session:
    """One loaded method and the model in eager mode; buffers keep their values from call to call.

    `execute` runs a rewritten program: it gets its bytes, the method's name and the flat inputs.
    """

    def __init__(self, pte: PteFile, method: str, reference: Reference, execute: Execute) -> None:
        self.pte, self.method, self.reference, self.execute = pte, method, reference, execute
        self.recorder = Recorder(pte, method)
        self.content = self.recorder.content()
        self.plan: ExecutionPlan = pte.program.execution_plan[self.recorder.index]
        self.notes = notes_of(pte, method)
        self.origins = Origins.of(pte.named_data)
        self.arenas = initial_arenas(pte, self.plan)
        self.state = {name: slot for slot, name in state_slots(self.plan)}

    def call(self, inputs: Sequence[Any]) -> Comparison:
        """Execute the method once with all its values recorded and compare each of them."""
        return _Call(self, inputs).compare()


class _Call:
    def __init__(self, session: Session, inputs: Sequence[Any]) -> None:
        self.recorder, self.reference = session.recorder, session.reference
        self.plan, self.method = session.plan, session.method
        self.notes, self.origins, self.state = session.notes, session.origins, session.state
        tensors = [_tensor(item) for item in inputs]
        eager = self.reference.bind(tensors)
        self.expected, self.returned = self.reference.run(eager)
        self.recorded = session.execute(session.content, self.method, list(inputs))
        self.memory = Memory(session.pte, self.plan, tensors, session.arenas)
        held = {name: self.memory.read(slot) for name, slot in self.state.items()}
        self.bound = eager | self.reference.buffers(held)
        self.cuts: dict[str, Any] = {}
        self.open: list[int] = []
        self.right: dict[int, Any] = {}
        self.shapes: dict[int, Any] = {}

    def compare(self) -> Comparison:
        checks: list[Check] = []
        taps: dict[int, list[tuple[int, Any]]] = {}
        for tap in self.recorder.taps:
            item = (tap.slot, _tensor(self.recorded[tap.output]))
            taps.setdefault(tap.instruction, []).append(item)
        steps = self.plan.chains[0].instructions
        found = effects(self.plan)
        ran, loops = self._executed(taps)
        missing, kept = 0, None
        self.shapes = {
            slot: tuple(value.shape)
            for items in taps.values()
            for slot, value in items
            if isinstance(value, Tensor)
        }
        for number in range(len(steps)):
            if number not in ran:
                missing += isinstance(steps[number].instr_args, (KernelCall, DelegateCall))
                continue
            made = [
                self._check(number, found[number].op, *tap, number in loops)
                for tap in taps.get(number, [])
            ]
            checks += [check for check in made if check is not None]
            wrong = [check for check in made if check is not None and check.wrong]
            if wrong and kept is None:
                kept = Found(number, self._before(steps[number].instr_args), self.right)
            self.right = {}
            for slot, result in taps.get(number, []):
                self.memory.write(slot, result)
            self.memory.step(steps[number])
        outputs = self._outputs()
        self.reference.new_state(self.returned)
        state = self.reference.mutated()
        far = {
            name: _distance(self.memory.read(slot), state[name])
            for name, slot in self.state.items()
            if name in state
        }
        return Comparison(self.method, checks, outputs, far, kept, missing)

    def _executed(self, taps: Mapping[int, Sequence[tuple[int, Any]]]) -> tuple[set[int], set[int]]:
        """Return the instructions that ran, and those that may have run more than once."""
        steps = self.plan.chains[0].instructions
        loops: set[int] = set()
        for number, step in enumerate(steps):
            call = step.instr_args
            if isinstance(call, JumpFalseCall) and call.destination_instruction <= number:
                loops |= set(range(call.destination_instruction, number + 1))
        numbers: dict[int, Any] = {}
        for items in taps.values():
            numbers |= dict(items)
        ran, position = set[int](), 0
        while position < len(steps):
            ran.add(position)
            call = steps[position].instr_args
            position += 1
            if isinstance(call, JumpFalseCall):
                value = numbers.get(call.cond_value_index, self._stored(call.cond_value_index))
                if value is not None and not bool(value):
                    position = max(position, call.destination_instruction)
        return ran, loops

    def _stored(self, slot: int) -> Any:
        try:
            return self.memory.read(slot)
        except UnknownValueError:
            return None

    def _check(self, number: int, op: str, slot: int, got: Any, loops: bool) -> Check | None:
        if not isinstance(got, Tensor):
            return None
        place = self.origins.get(self.method, number)
        check = Check(
            number,
            op,
            slot,
            place.get("module", ""),
            place.get("source", ""),
            dtype=_name(got.dtype),
            shape=tuple(got.shape),
        )
        note = self.notes.values.get(slot)
        if loops:
            check.reason = "in a loop, which computes it again and again"
            return check
        value = None if note is None else self.reference.values.get(note.name)
        if note is not None and value is None:
            raise _stranger(number, op, place, f"the model has no value {note.name!r}")
        if note is not None and value is not None:
            check.value = str(note)
            self._by_value(check, value, note, got)
            if isinstance(self.plan.chains[0].instructions[number].instr_args, DelegateCall):
                check.module = module_path(value.node) or check.module
                check.source = source_line(value.node) or check.source
        else:
            self._by_operator(check, got)
            self.open.append(number)
        return check

    def _by_value(self, check: Check, value: Value, note: Note, got: Tensor) -> None:
        expected = self.expected.get(note.name)
        if not isinstance(expected, Tensor):
            check.reason = "eager did not compute it"
            return
        expected = note.apply(expected) if note.fits(expected) else expected
        if expected.shape != got.shape or expected.dtype != got.dtype:
            raise _stranger(
                check.instruction,
                check.operator,
                {"module": check.module, "source": check.source},
                f"its result is {check.dtype}{list(check.shape)}, the model's {note.name!r} is "
                f"{_name(expected.dtype)}{list(expected.shape)}",
            )
        if value.operator.split(".")[1:2] and value.operator.split(".")[1] in UNDEFINED:
            check.reason = "memory that nothing has written"
            return
        if self._is_random(value):
            check.reason = "random numbers"
            self.cuts[note.name] = note.undo(got)
            return
        check.arrived = _distance(got, expected)
        try:
            here, nodes = self.reference.local(value, self.cuts, self.bound)
        except LookupError as error:
            check.reason = str(error.args[0])
            return
        here = note.apply(here)
        length = reduction_length(nodes)
        check.by, check.made = "value", _distance(got, here)
        self.right[check.slot] = here
        check.allowed = tolerance(here, got.dtype, length)
        if check.wrong:
            wide = self._wide(value, note)
            step = 1.0 if value.operator.startswith(QUANTIZE) else 0.0
            check.allowed = max(step, tolerance(here, got.dtype, length, wide))
        if check.wrong:
            check.suspects = tuple(self.open)
            check.cause = self._cause(check, got)
        self.open.clear()
        self.cuts[note.name] = note.undo(got)

    def _is_random(self, value: Value) -> bool:
        """Whether the value differs from call to call: attention may draw numbers, or not."""
        if torch.Tag.nondeterministic_seeded not in getattr(value.node.target, "tags", ()):
            return False
        found = []
        with torch.random.fork_rng(devices=[]):
            for seed in (1, 2):
                torch.manual_seed(seed)
                found.append(self.reference.local(value, self.cuts, self.bound)[0])
        return not torch.equal(*found)

    def _wide(self, value: Value, note: Note) -> Any:
        """Return the value in float64, None where an operator does not compute it so."""
        try:
            found = self.reference.local(value, self.cuts, self.bound, wide=True)[0]
        except (RuntimeError, TypeError):
            return None
        return note.apply(found) if isinstance(found, Tensor) else None

    def _by_operator(self, check: Check, got: Tensor) -> None:
        """Compare with torch's operator of the same name, on the values that it got here."""
        step = self.plan.chains[0].instructions[check.instruction].instr_args
        if not isinstance(step, KernelCall):
            check.reason = "a delegate's result that equals no value of the model"
            return
        try:
            here = eager_results(self.plan, step, self.memory.read, self.shapes).get(check.slot)
        except (NoOperatorError, UnknownValueError) as error:
            check.reason = f"a part of an operator of the model, and {error}"
            return
        if not isinstance(here, Tensor):
            check.reason = "not a result"
            return
        check.by, check.made = "operator", _distance(got, here)
        self.right[check.slot] = here
        check.allowed = tolerance(here, got.dtype, self._reads(step, here))

    def _reads(self, call: KernelCall, result: Tensor) -> int:
        """Return how many elements a result's element may be a sum of."""
        sizes = [
            self.plan.values[slot].val.sizes  # type: ignore[union-attr]
            for slot in call.args
            if isinstance(self.plan.values[slot].val, WireTensor)
        ]
        largest = max((int(np.prod(size)) for size in sizes), default=1)
        return max(1, largest // max(1, result.numel()), *(max(s, default=1) for s in sizes))

    def _cause(self, check: Check, got: Tensor) -> str:
        """Say whether the kernel computes what the file asks it to."""
        step = self.plan.chains[0].instructions[check.instruction].instr_args
        if not isinstance(step, KernelCall):
            return "inside the delegate"
        try:
            here = eager_results(self.plan, step, self.memory.read, self.shapes).get(check.slot)
        except (NoOperatorError, UnknownValueError):
            return ""
        if not isinstance(here, Tensor):
            return ""
        far = _distance(got, here)
        allowed = tolerance(here, got.dtype, self._reads(step, here))
        if far.problem or not far.max_abs <= allowed:
            return "the kernel computes something else than torch's operator"
        return (
            "the kernel is right: the weights, arguments or operator in the file differ from the "
            "model's"
        )

    def _before(self, call: Any) -> dict[int, Any]:
        """Return what the arguments of a call hold, as far as that is known."""
        found: dict[int, Any] = {}
        pending = list(call.args)
        while pending:
            slot = pending.pop()
            if slot < 0 or slot in found:
                continue
            items = getattr(self.plan.values[slot].val, "items", None)
            is_slots = type(self.plan.values[slot].val).__name__ not in ("BoolList", "DoubleList")
            pending += items if items and is_slots else []
            value = None if items else self._stored(slot)
            found |= {} if value is None else {slot: value}
        return found

    def _outputs(self) -> list[Distance | None]:
        found: list[Distance | None] = []
        device = self.recorded[: self.recorder.outputs]
        for got, expected in zip(device, self.reference.user_outputs(self.returned), strict=False):
            is_tensor = isinstance(expected, Tensor)
            found.append(_distance(_tensor(got), expected) if is_tensor else None)
        return found


def _stranger(number: int, op: str, place: Mapping[str, str], what: str) -> EtxError:
    where = " ".join(x for x in (place.get("module", ""), place.get("source", "")) if x)
    return EtxError(
        f"the model is not the one of this file: instruction {number} "
        f"({', '.join(filter(None, (op, where)))}): {what}; give the module "
        "that the file was compiled from, with the same dynamic shapes"
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _tensor(value: Any) -> Any:
    """Return an array as a tensor over its memory, and anything else as it is."""
    if isinstance(value, (Tensor, bool, int, float, str)) or value is None:
        return value
    if isinstance(value, np.ndarray):
        if not value.flags.writeable:
            value = value.copy()
        return torch.from_numpy(value)
    tensor: Tensor = torch.utils.dlpack.from_dlpack(value)
    return tensor


def _distance(got: Tensor, expected: Tensor) -> Distance:
    return distance(_array(got), _array(expected), _name(got.dtype))


def _array(tensor: Tensor) -> Any:
    if tensor.dtype in (torch.bfloat16, torch.float16) or "float8" in str(tensor.dtype):
        tensor = tensor.to(torch.float32)
    return tensor.detach().resolve_conj().resolve_neg().numpy()
