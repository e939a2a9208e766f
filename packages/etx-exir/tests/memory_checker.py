# SPDX-License-Identifier: BSD-3-Clause
"""Prove of a planned method that every read finds what was written for it.

The proof needs no lifetimes of the planner: it walks the instructions of a plan without reuse
(there, two tensors share addresses only when one is a view of the other), and keeps for every 16
bytes of the real plan's arenas who wrote them last.
"""

from __future__ import annotations

from etx_schema import DelegateCall, JumpFalseCall, KernelCall, MoveCall, Tensor, TensorList

GRAIN = 16
VIEWS = ("executorch_prim::et_view.default", "etx::view_at.default")


class Overlap(AssertionError):
    """A tensor was overwritten before it was read."""


class Span:
    """A planned tensor's grains."""

    def __init__(self, tensor, nbytes):
        info = tensor.allocation_info
        start = info.memory_offset_low + (info.memory_offset_high << 32)
        assert start % GRAIN == 0, "planned memory is aligned"
        self.arena = info.memory_id
        self.first, self.last = start // GRAIN, -(-(start + nbytes) // GRAIN)

    __hash__ = None

    def __eq__(self, other):
        return isinstance(other, Span) and vars(self) == vars(other)


def spans(plan):
    found = {}
    for index, value in enumerate(plan.values):
        if type(value.val) is Tensor and value.val.allocation_info is not None:
            found[index] = Span(value.val, tensor_bytes(value.val))
    return found


def tensor_bytes(tensor):
    from interpreter import DTYPES

    count = 1
    for size in tensor.sizes:
        count *= size
    return count * DTYPES[int(tensor.scalar_type)].itemsize


def groups(reference):
    """Number the sets of tensors that share addresses in the plan without reuse."""
    number, owner = {}, {}
    for index, span in spans(reference).items():
        cells = [(span.arena, grain) for grain in range(span.first, span.last)]
        known = {owner[cell] for cell in cells if cell in owner}
        assert len(known) <= 1
        number[index] = known.pop() if known else index
        owner.update(dict.fromkeys(cells, number[index]))
    return number


class Walk:
    """One or more executions of the reference's instructions on the plan's addresses."""

    def __init__(self, plan, reference, decide):
        self.plan, self.reference, self.decide = plan, reference, decide
        self.spans, self.groups = spans(plan), groups(reference)
        self.owners: dict[tuple[int, int], frozenset[int]] = {}
        self.replay = False
        calls = [i.instr_args for i in reference.chains[0].instructions]
        self.computed = {c.args[-1] for c in calls if isinstance(c, KernelCall)}
        self.computed |= {c.move_to for c in calls if isinstance(c, MoveCall)} | {*plan.inputs}
        for index, value in enumerate(plan.values):
            if index in self.spans and value.val.data_buffer_idx:
                self.write(index)

    def cells(self, index):
        span = self.spans[index]
        size = self.plan.non_const_buffer_sizes[span.arena]
        assert span.last * GRAIN <= -(-size // GRAIN) * GRAIN, "a tensor ends within its arena"
        return [(span.arena, grain) for grain in range(span.first, span.last)]

    def write(self, index):
        if index in self.spans:
            self.owners.update(dict.fromkeys(self.cells(index), frozenset([self.groups[index]])))

    def also(self, target, source):
        """Run a copy that was left out: where the source is, the target now is, and only there."""
        for cell in self.cells(target):
            owners = self.owners.get(cell, frozenset())
            there = self.groups[source] in owners
            change = frozenset([self.groups[target]])
            self.owners[cell] = owners | change if there else owners - change

    def read(self, index, at):
        if index not in self.spans:
            return
        for cell in self.cells(index):
            if self.groups[index] not in self.owners.get(cell, ()):
                raise Overlap(f"{at}: value {index} at {cell} holds {self.owners.get(cell)}")

    def execute(self, limit=400):
        for index in self.plan.inputs:
            self.write(index)
        for index in self.plan.inputs:
            self.read(index, "inputs")
        instructions = self.reference.chains[0].instructions
        at = count = 0
        while at < len(instructions) and count < limit:
            at = self.step(instructions[at].instr_args, at)
            count += 1
        if at < len(instructions):
            return False
        for index in self.plan.outputs:
            self.read(index, "outputs")
        for index, value in enumerate(self.plan.values):
            if index in self.spans and value.val.data_buffer_idx:
                self.read(index, "state")
        return True

    def step(self, call, at):
        if isinstance(call, JumpFalseCall):
            self.read(call.cond_value_index, at)
            constant = getattr(self.plan.values[call.cond_value_index].val, "bool_val", None)
            always = constant is False and call.cond_value_index not in self.computed
            taken = (always and not self.replay) or self.decide()
            return call.destination_instruction if taken else at + 1
        if isinstance(call, MoveCall):
            self.read(call.move_from, at)
            return at + 1
        args = self.flat(call.args)
        assert isinstance(call, (KernelCall, DelegateCall))
        name = "delegate"
        if isinstance(call, KernelCall):
            op = self.reference.operators[call.op_index]
            name = f"{op.name}.{op.overload}" if op.overload else op.name
        outs = self.outs(name, call)
        if name == "aten::copy_":
            target, source = call.args[0], call.args[1]
            if target in self.spans and self.spans[target] == self.spans.get(source):
                self.also(target, source)
                return at + 1
        for index in args:
            if index not in outs:
                self.read(index, at)
        if name not in VIEWS:
            for index in outs:
                self.write(index)
        return at + 1

    def outs(self, name, call):
        if name == "delegate":
            return set(call.args[self.delegate_inputs(call) :])
        if name in VIEWS:
            return {call.args[2]}
        if name in ("aten::copy_", "executorch_prim::et_copy_index.tensor"):
            return {call.args[0]}
        return set(self.flat(call.args[-1:]))

    def delegate_inputs(self, call):
        raise AssertionError("delegates are not walked")

    def flat(self, args):
        found = []
        for index in args:
            value = self.plan.values[index].val
            if isinstance(value, TensorList) or type(value).__name__ == "OptionalTensorList":
                found += [item for item in value.items if item >= 0]
            found.append(index)
        return found


def names(plan):
    for instruction in plan.chains[0].instructions:
        call = instruction.instr_args
        if isinstance(call, KernelCall):
            op = plan.operators[call.op_index]
            yield f"{op.name}.{op.overload}" if op.overload else op.name, call.args
        else:
            yield type(call).__name__, None


def check_same_steps(plan, reference):
    """Only copies onto the same bytes may be gone; a scatter may work in place."""
    where = spans(plan)
    left = []
    for name, args in names(reference):
        if name == "aten::copy_" and where.get(args[0]) == where.get(args[1]):
            continue
        left.append((name, args))
    there = list(names(plan))
    assert len(left) == len(there)
    for (name, args), (other, other_args) in zip(left, there, strict=True):
        if name == "aten::index_put.out" and other == "aten::index_put_":
            assert where[args[0]] == where[args[-1]]
            assert other_args == [*args[:-2], args[0]]
        else:
            assert (name, args) == (other, other_args)


def replay(plan, reference, jumps, runs):
    """Check the paths of `runs` executions, whose jumps were taken or not as `jumps` says."""
    check_same_steps(plan, reference)
    decisions = iter(jumps)
    walk = Walk(plan, reference, lambda: next(decisions))
    walk.replay = True
    for _ in range(runs):
        assert walk.execute(1 << 20)
    assert next(decisions, None) is None, "all jumps are walked"


def check(plan, reference, decide, runs=2):
    """Raise `Overlap` when a read in `plan` could find another tensor's bytes."""
    check_same_steps(plan, reference)
    walk = Walk(plan, reference, decide)
    for _ in range(runs):
        if not walk.execute():
            break
    return walk
