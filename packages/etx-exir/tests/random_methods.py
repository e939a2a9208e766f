# SPDX-License-Identifier: BSD-3-Clause
"""Random methods as lists of steps: chains, in-place candidates, views, state, branches, loops."""

from __future__ import annotations

import random
from types import SimpleNamespace

import torch
from etx_exir.emit import cond, jumps
from etx_exir.emit.method import MethodEmitter
from etx_exir.ir.pools import Pools
from etx_exir.plan import MemoryPlanningPass, naive, plan
from etx_exir.plan.linear_ir import Label, Storage
from etx_schema import Chain, ExecutionPlan, ExtraTensorInfo, Operator

NOTHING = SimpleNamespace(graph=SimpleNamespace(nodes=[]))
SEPARATE = MemoryPlanningPass(memory_planning_algo=naive, reuse_in_place=False)


def draws(seed):
    source = random.Random(seed)
    return source.randint


def coin(seed):
    source = random.Random(seed + 1)
    return lambda: source.random() < 0.5


class Builder:
    """Draws a method from `draw(low, high)`, a source of integers."""

    def __init__(self, draw, length):
        self.draw, self.length = draw, length
        self.emitter = MethodEmitter("forward", None, Pools())
        self.depth = 0
        self.alive = []

    def build(self):
        emitter = self.emitter
        for _ in range(self.draw(1, 3)):
            self.alive.append(emitter.fresh(self.fake()))
            emitter.listing.inputs.append(self.alive[-1])
        buffers = [self.state(f"b{i}") for i in range(self.draw(0, 2))]
        self.alive += buffers
        self.steps(self.length)
        sources = [self.same(b) for b in buffers]
        outputs = [self.pick() for _ in range(self.draw(1, 3))]
        taken = {id(emitter.listing.places[b].root()[0]) for b in buffers}
        for output in outputs:
            if id(emitter.listing.places[output].root()[0]) in taken:
                output = emitter.clone(output)
            emitter.listing.outputs.append(output)
        jumps.assign(emitter, sources, buffers)
        return emitter

    def fake(self):
        return torch.empty(4 * self.draw(1, 12), device="meta")

    def state(self, name):
        fake = self.fake()
        index = self.emitter.tensor(fake, Storage(fake.nbytes, persistent=True))
        tensor = self.emitter.values.items[index].val
        tensor.data_buffer_idx = 1
        tensor.extra_tensor_info = ExtraTensorInfo(fully_qualified_name=name)
        self.emitter.listing.state.append(index)
        return index

    def pick(self):
        return self.alive[self.draw(0, len(self.alive) - 1)]

    def same(self, value):
        """Return a value of the size of `value`: one that is alive, or a new one."""
        size = self.emitter.fakes[value].shape
        fitting = [v for v in self.alive if self.emitter.fakes[v].shape == size]
        if self.draw(0, 2):
            return fitting[self.draw(0, len(fitting) - 1)]
        return self.op([self.pick()], self.emitter.fakes[value])

    def steps(self, count):
        for _ in range(count):
            kind = self.draw(0, 9)
            if kind < 4:
                self.elementwise()
            elif kind < 6:
                self.alive.append(self.op([self.pick(), self.pick()], self.fake()))
            elif kind == 6:
                self.view()
            elif kind == 7:
                self.scatter()
            elif self.depth < 2:
                self.nested()

    def op(self, reads, fake):
        out = self.emitter.fresh(fake)
        self.emitter.call("aten::bmm", "out", [*reads, out, out], reads, [out])
        return out

    def elementwise(self):
        a = self.pick()
        fitting = [v for v in self.alive if self.emitter.shapes[v] == self.emitter.shapes[a]]
        self.of_both(a, fitting[self.draw(0, len(fitting) - 1)])

    def of_both(self, a, b):
        out = self.emitter.fresh(self.emitter.fakes[a])
        step = self.emitter.call("aten::add", "out", [a, b, out, out], [a, b], [out])
        step.sharable = ((a, out), (b, out))
        self.alive.append(out)
        return out

    def scatter(self):
        a, values = self.pick(), self.pick()
        out = self.emitter.fresh(self.emitter.fakes[a])
        args = [a, values, values, values, out, out]
        step = self.emitter.call("aten::index_put", "out", args, [a, values], [out])
        step.sharable = ((a, out),)
        self.alive.append(out)

    def view(self):
        base = self.pick()
        place = self.emitter.listing.places[base]
        rows = place.nbytes // 16
        start = self.draw(0, rows - 1)
        fake = torch.empty(4 * self.draw(1, rows - start), device="meta")
        view = self.emitter.tensor(fake, place.storage, place.offset + 16 * start)
        self.alive.append(view)

    def nested(self):
        self.depth += 1
        outer = list(self.alive)
        if self.draw(0, 2):
            self.cond()
        else:
            self.loop()
        self.depth -= 1
        self.alive = outer + self.alive[len(self.alive) - self.added :]

    def cond(self):
        emitter, outer = self.emitter, list(self.alive)
        results = [emitter.fresh(self.fake()) for _ in range(self.draw(1, 2))]
        other, end = Label(), Label()
        jumps.jump(emitter, self.pick(), other)
        for last, label in ((False, other), (True, end)):
            self.alive = list(outer)
            cond.branch(emitter, NOTHING, [], results, self.body(results))
            if not last:
                jumps.jump(emitter, None, end)
            jumps.here(emitter, label)
        self.alive, self.added = outer + results, len(results)

    def body(self, results):
        def nodes(emitter, _):
            self.steps(self.draw(0, 4))
            return [self.same_as(r) for r in results]

        return nodes

    def same_as(self, result):
        size = self.emitter.fakes[result].shape
        fitting = [v for v in self.alive if self.emitter.fakes[v].shape == size]
        if fitting and self.draw(0, 3):
            found = fitting[self.draw(0, len(fitting) - 1)]
            return self.chain(found) if self.draw(0, 2) else found
        return self.op([self.pick()], self.emitter.fakes[result])

    def chain(self, value):
        """Return what is computed of `value` step by step, each reading it once more."""
        result = value
        for _ in range(self.draw(1, 3)):
            result = self.of_both(result, value)
        return result

    def loop(self):
        emitter, outer = self.emitter, list(self.alive)
        starts = [self.pick() for _ in range(self.draw(1, 3))]
        carries = [emitter.fresh(emitter.fakes[s]) for s in starts]
        jumps.assign(emitter, starts, carries)
        again, end = Label(), Label()
        jumps.here(emitter, again)
        self.alive = outer + carries
        jumps.jump(emitter, self.op([self.pick()], self.fake()), end)
        self.steps(self.draw(0, 4))
        results = [self.same_as(c) for c in carries]
        jumps.assign(emitter, results, carries)
        jumps.jump(emitter, None, again)
        jumps.here(emitter, end)
        self.alive, self.added = outer + carries, len(carries)


def planned(draw, length, options):
    """Return a random method as planned under `options`."""
    emitter = Builder(draw, length).build()
    result = plan(emitter.listing, options)
    emitter.listing.finish()
    steps = [step.instruction for step in emitter.listing.steps]
    method = ExecutionPlan(
        name="forward",
        values=emitter.values.items,
        inputs=emitter.listing.inputs,
        outputs=emitter.listing.outputs,
        chains=[Chain(instructions=steps)],
        operators=[Operator(name=n, overload=o) for n, o in emitter.listing.operators],
        non_const_buffer_sizes=result.arena_sizes,
    )
    return method, result.report
