# SPDX-License-Identifier: BSD-3-Clause
"""Compare one execution of a method with the exported program, instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from etx_exir.ir.equal_values import INNER
from etx_exir.ir.provenance import module_path, source_line
from etx_schema import DelegateCall, EtxError, ExecutionPlan, JumpFalseCall, KernelCall, PteFile
from etx_schema import Tensor as WireTensor
from etx_schema.inspect.reads_writes import effects
from etx_schema.problem import Origins
from torch import Tensor
from torch.fx import Node

from etx_devtools.compare.arrays import as_tensor, distance_of, dtype_text
from etx_devtools.compare.checks import Check, Comparison
from etx_devtools.compare.following import Following
from etx_devtools.compare.inputs import check_inputs
from etx_devtools.compare.layers import Layer, Layers
from etx_devtools.compare.loops import Loops
from etx_devtools.compare.memory import Memory, UnknownValueError, initial_arenas, state_slots
from etx_devtools.compare.metrics import Distance
from etx_devtools.compare.narrow import has_narrow_weights
from etx_devtools.compare.notes import Note, notes_of
from etx_devtools.compare.operators import NoOperatorError, eager_results
from etx_devtools.compare.record import Recording, find_method, shapes_of
from etx_devtools.compare.reduce import Found, Overwriting
from etx_devtools.compare.reference import UNDEFINED, Reference, Value
from etx_devtools.compare.tolerance import reads_weight, reduction_length, tolerance

__all__ = ["Execution", "Session"]

BY_ROUNDING = 2.0
NUMBERS = (bool, int, float)
OTHER_INPUTS = (
    "the recorded call had other inputs than these, which a dump does not hold, or was of another "
    "program: record it with "
    "inputs of its own (`etx run --input`), and give the same with --inputs"
)
QUANTIZE = ("quantized_decomposed.quantize", "torchao.quantize_affine")
Execution = Callable[[Sequence[Any]], Recording]
"""Executes the method with flat inputs, or tells what a device did with them."""


class Session:
    """One loaded method and the model in eager mode; buffers keep their values from call to call.

    `inner` is the same program decomposed, where the file notes the parts of operators, too.
    """

    def __init__(
        self,
        pte: PteFile,
        method: str,
        reference: Reference,
        source: Execution,
        inner: Reference | None = None,
        layers: Layers | None = None,
    ) -> None:
        self.pte, self.method, self.source = pte, method, source
        self.layers = layers
        self.reference, self.inner = reference, inner
        self.plan: ExecutionPlan = pte.program.execution_plan[find_method(pte, method)]
        check_inputs(method, self.plan, reference.inputs())
        self.notes = notes_of(pte, method)
        self.origins = Origins.of(pte.named_data)
        self.is_narrow = has_narrow_weights(self.plan, method, self.origins, reference)
        self.arenas = initial_arenas(pte, self.plan)
        self.state = {name: slot for slot, name in state_slots(self.plan)}
        self.calls = 0

    def call(self, inputs: Sequence[Any]) -> Comparison:
        """Execute the method once with all its values recorded and compare each of them."""
        found = _Call(self, inputs).compare()
        self.calls += 1
        return found


class _Call:
    def __init__(self, session: Session, inputs: Sequence[Any]) -> None:
        self.session, self.reference, self.inner = session, session.reference, session.inner
        self.plan, self.method = session.plan, session.method
        self.notes, self.origins, self.state = session.notes, session.origins, session.state
        tensors = [_own(as_tensor(item)) for item in inputs]
        eager = self.reference.bind(tensors)
        self.recording = session.source(list(inputs))
        self.is_recorded = getattr(session.source, "is_recorded", False)
        self.memory = Memory(session.pte, self.plan, tensors, session.arenas)
        held = {name: self.memory.read(slot) for name, slot in self.state.items()}
        self.held = held
        self.bound = eager | self.reference.buffers(held)
        names = self._names()
        self.expected = Following(self.reference, eager, names)
        self.parts: dict[Any, Any] = {}
        self.within: Following | None = None
        if self.inner is not None:
            parts = self.inner.bind(tensors)
            self.within = Following(self.inner, parts, (n for n in names if INNER in n))
            self.parts = parts | self.inner.buffers(held)
        self.cuts: dict[str, Any] = {}
        self.open: list[int] = []
        self.right: dict[int, Any] = {}
        self.shapes = shapes_of(self.recording)
        self.effects = effects(self.plan)
        self.steps = self.plan.chains[0].instructions
        self.checks: list[Check] = []
        self.clobbered: dict[int, tuple[int, int]] = {}
        self.victims: dict[int, int] = {}
        self.jump = 0
        self.kept: Found | None = None
        self.layers: list[Layer] = []
        self.floats = {} if session.layers is None else session.layers.values(inputs)

    def compare(self) -> Comparison:
        early = self._initial_state()
        sides = [(self.reference, self.bound)]
        sides += [] if self.inner is None else [(self.inner, self.parts)]
        loops = Loops(self.plan, self.notes, sides, self.cuts)
        for step in self.recording.steps:
            number = step.instruction
            call = self.steps[number].instr_args
            for place, fault in loops.reach(number):
                self._fault(place, fault)
            if isinstance(call, JumpFalseCall):
                self.jump = number
            if number in early:
                self.checks += early.pop(number)
            self._find_clobbered(number)
            made = [self._check(number, slot, got) for slot, got in step.values]
            checks = [check for check in made if check is not None]
            for check in checks:
                check.turn = loops.turn(number)
            self.checks += checks
            wrong = next((check for check in checks if check.wrong), None)
            if wrong is not None:
                self._blame_overwriting(wrong)
                if self.kept is None:
                    self.kept = self._found(number)
            self.right = {}
            for slot, result in step.values:
                self.memory.write(slot, result, number)
            self.memory.step(self.steps[number])
        for place, fault in loops.reach(len(self.steps)):
            self._fault(place, fault)
        self.checks += [check for checks in early.values() for check in checks]
        self._final_state()
        return self._comparison()

    def _names(self) -> list[str]:
        """Return the names of the values that will be compared, each as often as it is."""
        slots = (slot for step in self.recording.steps for slot, _ in step.values)
        return [note.name for slot in slots if (note := self.notes.values.get(slot))]

    def _comparison(self) -> Comparison:
        returned = self.expected.outputs()
        self.reference.new_state(returned)
        if self.inner is not None and self.within is not None:
            self.inner.new_state(self.within.outputs())
        state = self.reference.mutated()
        far = {
            name: distance_of(self.memory.read(slot), state[name])
            for name, slot in self.state.items()
            if name in state
        }
        ran = {step.instruction for step in self.recording.steps}
        calls = (KernelCall, DelegateCall)
        missing = sum(
            isinstance(step.instr_args, calls) and number not in ran
            for number, step in enumerate(self.steps)
        )
        outputs = self._outputs(returned)
        return Comparison(self.method, self.checks, outputs, far, self.kept, missing, self.layers)

    def _check_at(self, number: int) -> Check:
        """Return an empty check of an instruction, with where it comes from."""
        place = self.origins.get(self.method, number)
        op = self.effects[number].op if number < len(self.effects) else "the end of the method"
        return Check(number, op, -1, place.get("module", ""), place.get("source", ""))

    def _fault(self, number: int, text: str, before: Check | None = None) -> Check:
        """Say of an instruction that ran that it is at fault."""
        limit = len(self.checks) if before is None else self.checks.index(before)
        found = next((c for c in reversed(self.checks[:limit]) if c.instruction == number), None)
        if found is None:
            found = self._check_at(number)
            self.checks.insert(limit, found)
        found.fault = found.fault or text
        return found

    def _initial_state(self) -> dict[int, list[Check]]:
        """Compare buffers with the model's before the first call; return checks by their reader."""
        early: dict[int, list[Check]] = {}
        if self.session.calls:
            return early
        expected = self.reference.mutated()
        for name, slot in self.state.items():
            got, right = self.held[name], expected.get(name)
            if not isinstance(right, Tensor) or got.shape != right.shape:
                continue
            far = distance_of(got, right)
            if far.max_abs == 0:
                continue
            reader = next((n for n, e in enumerate(self.effects) if slot in e.reads), 0)
            check = self._check_at(reader)
            check.slot, check.dtype, check.shape = slot, dtype_text(got.dtype), tuple(got.shape)
            check.by, check.made, check.value = "value", far, f"the buffer {name}"
            check.fault = f"the buffer {name} begins with other values than the model's"
            early.setdefault(reader, []).append(check)
        return early

    def _final_state(self) -> None:
        """Compare what buffers hold at the end with what is computed of the device's values."""
        try:
            final = self.reference.final_state(self.cuts, self.bound)
        except (LookupError, RuntimeError):
            return
        for name, slot in self.state.items():
            value, right = final.get(name, ("", None))
            got = self.memory.read(slot)
            if not isinstance(right, Tensor) or got.shape != right.shape:
                continue
            far = distance_of(got, right)
            if far.max_abs <= tolerance(right, got.dtype, max(1, *right.shape, 1)):
                continue
            written = [item.instruction for item in self.memory.log if item.slot == slot]
            maker = [c.instruction for c in self.checks if c.value == value]
            place = ([n for n in written if n >= 0] or maker or [len(self.steps) - 1])[-1]
            check = self._fault(place, f"the buffer {name} does not get its new value, {value}")
            check.made, check.by = check.made or far, check.by or "value"
            if not check.source and value in self.reference.values:
                _place(check, self.reference.values[value])

    def _find_clobbered(self, number: int) -> None:
        for slot in self.effects[number].reads:
            found = self.memory.overwritten(slot)
            if found is not None:
                self.clobbered[number] = found
                self.victims[number] = slot

    def _blame_overwriting(self, check: Check) -> None:
        """Where a wrong result read what something had destroyed, say so of the latter."""
        for reader in (*check.suspects, check.instruction):
            maker, other = self.clobbered.get(reader, (-1, -1))
            if other < 0 or other == reader:
                continue
            made = f"the result of instruction {maker}" if maker >= 0 else "an input"
            text = f"it overwrites {made}, which instruction {reader} reads"
            self._fault(other, text, check)
            check.cause = f"instruction {other} has overwritten what it reads"
            return

    def _found(self, number: int) -> Found:
        """Return a wrong instruction with what it read, and what had overwritten that."""
        before = self._before(self.steps[number].instr_args)
        _, other = self.clobbered.get(number, (-1, -1))
        if other < 0 or not isinstance(self.steps[other].instr_args, KernelCall):
            return Found(number, before, self.right)
        victim, held = self.victims[number], self.memory.held
        (slot, *_) = (*self.effects[other].writes, *self.effects[other].updates)
        args = self._before(self.steps[other].instr_args)
        args |= {s: held[s] for s in args if s in held}
        before[victim] = held[victim]
        return Found(number, before, self.right, Overwriting(other, args, slot, victim))

    def _stored(self, slot: int) -> Any:
        try:
            return self.memory.read(slot)
        except UnknownValueError:
            return None

    def _check(self, number: int, slot: int, got: Any) -> Check | None:
        note = self.notes.values.get(slot)
        if isinstance(got, NUMBERS) and note is not None:
            got = torch.as_tensor(got)
        if not isinstance(got, Tensor):
            return None
        check = self._check_at(number)
        check.slot, check.dtype, check.shape = slot, dtype_text(got.dtype), tuple(got.shape)
        side = self.inner if note is not None and INNER in note.name else self.reference
        value = None if note is None or side is None else side.values.get(note.name)
        if note is not None and value is None and INNER not in note.name:
            raise _stranger(check, f"the model has no value {note.name!r}")
        if note is not None and value is not None and not value.is_of_loop:
            check.value = str(note)
            self._by_value(check, value, note, got)
            is_delegate = isinstance(self.steps[number].instr_args, DelegateCall)
            if is_delegate or not check.source:
                _place(check, value)
        else:
            self._by_operator(check, got)
            self.open.append(number)
        return check

    def _by_value(self, check: Check, value: Value, note: Note, got: Tensor) -> None:
        side, bound = self._side(note)
        source = self.within if self.within is not None and INNER in note.name else self.expected
        exported = source.take(note.name)
        expected = _number_or_tensor(exported)
        if not note.holds(got) or (isinstance(expected, Tensor) and not note.fits(expected)):
            order = list(note.order)
            raise _stranger(check, f"its {got.dim()} dimensions are not those of the order {order}")
        if isinstance(expected, Tensor):
            expected = note.apply(expected)
            self._check_kind(check, note, expected, got)
        elif value.path and side.takes(value.path, self.cuts, bound) is False:
            self._fault(self.jump, "it leads to another branch than the model takes")
        if value.operator.split(".")[1:2] and value.operator.split(".")[1] in UNDEFINED:
            check.reason = "memory that nothing has written"
            return
        if self._is_random(value, note):
            check.reason = "random numbers"
            self.cuts[note.name] = note.undo(got)
            return
        if isinstance(expected, Tensor):
            check.arrived = distance_of(got, expected)
            self._add_layer(check, note, got, exported)
        try:
            here, nodes = side.local(value, self.cuts, bound)
        except LookupError:
            self._by_operator(check, got)
            self.open.append(check.instruction)
            return
        here = note.apply(_number_or_tensor(here))
        if here.shape != got.shape:
            check.reason = "another branch or loop ran than in the model"
            return
        length = self._length(got.dtype, nodes)
        check.by, check.made = "value", distance_of(got, here)
        self.right[check.slot] = here
        unit = self._unit(got.dtype, nodes)
        check.allowed = tolerance(here, unit, length)
        if check.wrong:
            wide = self._wide(value, note)
            step = 1.0 if value.operator.startswith(QUANTIZE) else 0.0
            check.allowed = max(step, tolerance(here, unit, length, wide))
        if check.wrong and any(str(n.target).startswith(QUANTIZE) for n in nodes[:-1]):
            check.allowed = max(check.allowed, self._rounding(check, value, note, here))
        if check.wrong:
            self._from_parts(check, note, got, nodes)
        if check.wrong:
            check.suspects = tuple(self.open)
            check.cause = self._cause(check, got)
        self.open.clear()
        is_number = not isinstance(value.node.meta.get("val"), Tensor)
        self.cuts[note.name] = got.item() if is_number else note.undo(got)

    def _from_parts(self, check: Check, note: Note, got: Tensor, nodes: Sequence[Node]) -> None:
        """Compute a value from the parts of the operators above it, where one of these is wrong.

        What the model computes from before them has that error, too.
        """
        value = None if self.inner is None else self.inner.values.get(note.name)
        names = {self.reference.names.get(node) for node in nodes}
        wrong = (c.value.partition(INNER) for c in self.checks if c.wrong)
        if self.inner is None or value is None or not any(m and n in names for n, m, _ in wrong):
            return
        try:
            found, taken = self.inner.local(value, self.cuts, self.parts)
        except LookupError:
            return
        here = note.apply(_number_or_tensor(found))
        if here.shape == got.shape:
            check.made = distance_of(got, here)
            self.right[check.slot] = here
            unit, length = self._unit(got.dtype, taken), self._length(got.dtype, taken)
            check.allowed = max(check.allowed, tolerance(here, unit, length))

    def _unit(self, dtype: torch.dtype, nodes: Sequence[Node]) -> torch.dtype:
        """Return the dtype to whose last bits a value of `dtype` is right: of layers, whose weights
        may be narrower than the model's, that of the weights."""
        is_narrow = dtype is torch.float32 and self.session.is_narrow and reads_weight(nodes)
        return torch.bfloat16 if is_narrow else dtype

    def _length(self, dtype: torch.dtype, nodes: Sequence[Node]) -> int:
        """Return how many roundings to `_unit` add up: sums of narrow numbers are float32."""
        return reduction_length(nodes) if self._unit(dtype, nodes) is dtype else 1

    def _add_layer(self, check: Check, note: Note, got: Tensor, expected: Any) -> None:
        pairs = self.session.layers
        if pairs is not None and isinstance(expected, Tensor):
            plain = note.undo(got)
            found = pairs.layer(check.instruction, note.name, plain, expected, self.floats)
            self.layers += [] if found is None else [found]

    def _side(self, note: Note) -> tuple[Reference, Any]:
        """Return the model that computes a value, and what its placeholders hold."""
        if self.inner is not None and INNER in note.name:
            return self.inner, self.parts
        return self.reference, self.bound

    def _check_kind(self, check: Check, note: Note, expected: Tensor, got: Tensor) -> None:
        """Refuse a result of another shape or dtype than the model's value: EtxError."""
        if expected.shape == got.shape and expected.dtype == got.dtype:
            return
        raise _stranger(
            check,
            f"its result is {check.dtype}{list(check.shape)}, the model's {note.name!r} is "
            f"{dtype_text(expected.dtype)}{list(expected.shape)}",
            self.is_recorded,
        )

    def _is_random(self, value: Value, note: Note) -> bool:
        """Whether the value differs from call to call: attention may draw numbers, or not."""
        if torch.Tag.nondeterministic_seeded not in getattr(value.node.target, "tags", ()):
            return False
        found = []
        side, bound = self._side(note)
        with torch.random.fork_rng(devices=[]):
            for seed in (1, 2):
                torch.manual_seed(seed)
                found.append(side.local(value, self.cuts, bound)[0])
        return not torch.equal(*found)

    def _wide(self, value: Value, note: Note) -> Any:
        """Return the value in float64, None where an operator does not compute it so."""
        side, bound = self._side(note)
        try:
            found = side.local(value, self.cuts, bound, wide=True)[0]
        except (RuntimeError, TypeError, AssertionError):
            return None
        return note.apply(found) if isinstance(found, Tensor) else None

    def _rounding(self, check: Check, value: Value, note: Note, here: Tensor) -> float:
        """Return how far a value is off where integers inside are rounded otherwise."""
        side, bound = self._side(note)
        step = self.steps[check.instruction].instr_args
        chooses = isinstance(step, DelegateCall) or "dynamic_linear" in check.operator
        several = map(note.apply, side.rounding(value, self.cuts, bound, chooses))
        return BY_ROUNDING * max(distance_of(item, here).max_abs for item in several)

    def _by_operator(self, check: Check, got: Tensor) -> None:
        """Compare with torch's operator of the same name, on the values that it got here."""
        step = self.plan.chains[0].instructions[check.instruction].instr_args
        if not isinstance(step, KernelCall):
            check.reason = "a delegate's result that equals no value of the model"
            return
        try:
            found = self._again(step, check.slot, self._read, got.dtype)
        except (NoOperatorError, UnknownValueError) as error:
            check.reason = f"a part of an operator of the model, and {error}"
            return
        if found is None:
            check.reason = "not a result"
            return
        here, check.allowed = found
        check.by, check.made = "operator", distance_of(got, here)
        self.right[check.slot] = here

    def _again(
        self, step: KernelCall, slot: int, read: Callable[[int], Any], dtype: torch.dtype
    ) -> tuple[Tensor, float] | None:
        """Return what torch's operator makes of what `read` gives, and how far off one may be."""
        here = eager_results(self.plan, step, read, self.shapes).get(slot)
        if not isinstance(here, Tensor):
            return None
        try:
            wide = eager_results(self.plan, step, read, self.shapes, wide=True).get(slot)
        except (NoOperatorError, RuntimeError):
            wide = None
        return here, tolerance(here, dtype, self._reads(step, here), wide)

    def _read(self, slot: int) -> Any:
        """Return what `slot` holds, of a constant that the model has by that name the model's."""
        here, value = self.memory.read(slot), self.plan.values[slot].val
        if not isinstance(value, WireTensor) or value.allocation_info or not value.data_buffer_idx:
            return here
        name = self.origins.constant(self.method, value.data_buffer_idx)
        own = None if name is None else self.reference.constant(name)
        is_same = own is not None and (own.shape, own.dtype) == (here.shape, here.dtype)
        return own if is_same else here

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
            found = self._again(step, check.slot, self.memory.read, got.dtype)
        except (NoOperatorError, UnknownValueError):
            return ""
        if found is None:
            return ""
        here, allowed = found
        far = distance_of(got, here)
        if far.problem or not far.max_abs <= allowed:
            reads = {*step.args} & {*self.plan.inputs}
            other = f", or {OTHER_INPUTS}" if reads and self.is_recorded else ""
            return f"the kernel computes something else than torch's operator{other}"
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

    def _outputs(self, returned: Sequence[Any]) -> list[Distance | None]:
        found: list[Distance | None] = []
        device = self.recording.outputs
        for got, expected in zip(device, self.reference.user_outputs(returned), strict=False):
            is_tensor = isinstance(expected, Tensor)
            found.append(distance_of(as_tensor(got), expected) if is_tensor else None)
        return found


def _stranger(check: Check, what: str, is_recorded: bool = False) -> EtxError:
    other = f"; or {OTHER_INPUTS}" if is_recorded else ""
    where = ", ".join(filter(None, (check.operator, f"{check.module} {check.source}".strip())))
    return EtxError(
        f"the model is not the one of this file: instruction {check.instruction} ({where}): "
        f"{what}; give the module that the file was compiled from, with the same dynamic shapes "
        f"and --quantize{other}"
    )


def _place(check: Check, value: Value) -> None:
    """Take module and line from the model's value, or from the nearest above it that has a line."""
    node = value.node
    while not source_line(node) and node.all_input_nodes:
        node = node.all_input_nodes[0]
    check.module = module_path(node) or check.module
    check.source = source_line(node) or check.source


def _own(value: Any) -> Any:
    """Return a copy of a tensor: what runs may write to its inputs."""
    return value.clone() if isinstance(value, Tensor) else value


def _number_or_tensor(value: Any) -> Any:
    """Return a number as a tensor, and anything else as it is."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value
    return torch.as_tensor(value) if isinstance(value, NUMBERS) else value
