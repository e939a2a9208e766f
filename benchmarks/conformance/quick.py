# SPDX-License-Identifier: BSD-3-Clause
"""The harness as it is, where torch's tables of decompositions are made once a process.

usage: quick.py HARNESS [--go-on] [ITS ARGUMENTS]

torch.export collects what is composite, and registers its own way of taking each apart, for every
program: 0.25 s, of which nothing depends on the program. A third of a second a sample becomes a
fifteenth. Samples that differ in their numbers alone share one export and one file. Operators of
few samples come first, so that a run that does not come to its end has most of them; `--go-on` runs
those that its journals have not. Where numbers of up to 32 bits differ from eager, both are
compared with float64; where places do, what is there is.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from judged import WIDER, are_ties, is_near, is_rounded, widened
from run import EXACT, NEAR, TIES
from torch._decomp.decompositions_for_rng import PhiloxStateTracker
from torch._export import utils
from torch._subclasses.fake_impls import op_implementations_dict as FAKE
from torch.export import decomp_utils, exported_program
from torch.utils._pytree import tree_flatten

Table = dict[Any, Callable[..., Any]]


def remember() -> None:
    """Have torch.export keep what it makes for each program, as long as no operator is added."""
    find = utils._collect_all_valid_cia_ops
    listed = torch._C._dispatch_get_registrations_for_dispatch_key

    @functools.lru_cache(maxsize=1)
    def found(_count: int) -> frozenset[Any]:
        return frozenset(find())

    def collect() -> frozenset[Any]:
        return found(len(listed("CompositeImplicitAutograd")))

    for module in (utils, decomp_utils, exported_program):
        module._collect_all_valid_cia_ops = collect
    table = dict(exported_program.default_decompositions().items())
    exported_program.default_decompositions = lambda: dict(table)
    override = Overrides(exported_program._override_composite_implicit_decomp)
    exported_program._override_composite_implicit_decomp = override.overridden
    preservable = functools.lru_cache(maxsize=None)(exported_program._is_preservable_cia_op)
    exported_program._is_preservable_cia_op = preservable
    PhiloxStateTracker.reset = classmethod(lambda _: None)  # of draws that torch.compile counts


class Overrides:
    """Kernels that torch gives operators while a program is taken apart: made once, then put in."""

    def __init__(self, override: Callable[[Table], AbstractContextManager[None]]) -> None:
        self.override = override
        self.made: dict[Any, tuple[Any, dict[Any, Any], Any]] = {}

    @contextmanager
    def overridden(self, table: Table) -> Iterator[None]:
        own = {op: call for op, call in table.items() if not as_torch_does(call)}
        new = {op: call for op, call in own.items() if self.made.get(op, (None,))[0] is not call}
        if new:
            with self.override(new):
                for op, call in new.items():
                    self.made[op] = call, op.py_kernels.copy(), FAKE.get(op)
        before = {op: op.py_kernels.copy() for op in own}
        try:
            for op in own:
                _, kernels, fake = self.made[op]
                self.put(op, kernels, fake)
            yield
        finally:
            for op, kernels in before.items():
                self.put(op, kernels, None)

    def put(self, op: Any, kernels: dict[Any, Any], fake: Any) -> None:
        op.py_kernels.clear()
        op.py_kernels.update(kernels)
        op._dispatch_cache.clear()
        FAKE.pop(op, None)
        if fake is not None:
            FAKE[op] = fake


def as_torch_does(call: Callable[..., Any]) -> bool:
    """Tell whether `call` takes a composite operator apart as torch would without it."""
    inner = call.func if isinstance(call, functools.partial) else call
    return inner.__qualname__.startswith("_get_decomp_for_cia.")


class Shared:
    """What is made of the samples of one operator that have the same shapes, dtypes and arguments.

    The harness exports a module of tensors, decomposes it to see its operators, and lowers it; it
    is given what an earlier sample of the same key had.
    """

    def __init__(self) -> None:
        self.made: dict[Any, Any] = {}
        self.op: Any = None
        self.ops = 0
        self.key: Any = None

    def begin(self, op: Any, sample: Any) -> None:
        leaves, tree = tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
        args = tuple(
            (tuple(x.shape), x.dtype) if isinstance(x, torch.Tensor) else (type(x), repr(x))
            for x in leaves
        )
        unique = any(re.search(r" at 0x", str(each)) for each in args)
        if op is not self.op:
            self.made.clear()
            self.ops += 1
            if self.ops % 20 == 0:
                gc.collect()
        self.op, self.key = op, None if unique else (str(tree), args)

    def once(self, kind: str, make: Callable[[], Any]) -> Any:
        if self.key is None:
            return make()
        if (self.key, kind) not in self.made:
            if len(self.made) % 300 == 299:
                gc.collect()
            self.made[self.key, kind] = make()
        return self.made[self.key, kind]


def share(harness: ModuleType) -> None:
    """Have the harness export, decompose and lower once for samples of the same key."""
    shared, one, plugin, export = Shared(), harness.one, harness.plugin, torch.export.export
    decompose = exported_program.ExportedProgram.run_decompositions

    def began(op: Any, sample: Any, *rest: Any) -> Any:
        shared.begin(op, sample)
        try:
            return one(op, sample, *rest)
        finally:
            shared.key = None

    def exported(*args: Any, **kwargs: Any) -> Any:
        return shared.once("exported", lambda: export(*args, **kwargs))

    def decomposed(program: Any, *table: Any) -> Any:
        if table:
            return decompose(program, *table)
        return shared.once("core", lambda: decompose(program))

    def plugged(name: str) -> Any:
        plug = plugin(name)
        lower = plug.lower
        plug.lower = lambda program: shared.once("file", lambda: lower(program))
        return plug

    harness.one, harness.plugin, torch.export.export = began, plugged, exported
    exported_program.ExportedProgram.run_decompositions = decomposed
    gc.freeze()
    gc.disable()


def order(harness: ModuleType, goes_on: bool) -> None:
    """Have the harness begin with operators of few samples, and leave out what it came to."""
    parent = harness.parent

    def number(op: Any, dtype: torch.dtype) -> int:
        try:
            return sum(1 for _ in op.sample_inputs("cpu", dtype, requires_grad=False))
        except Exception:  # the harness notes it
            return 0

    def ordered(options: Any) -> Any:
        from torch.testing._internal.common_methods_invocations import op_db

        dtype = getattr(torch, options.dtype)
        before = sorted(Path(options.work).glob(f"{options.tag}.*.jsonl")) if goes_on else []
        done = set().union(*map(finished, before))
        if options.max_samples == 0:
            op_db.sort(key=lambda op: number(op, dtype) if harness.op_key(op) not in done else 0)
        if not before:
            return parent(options)
        names = [harness.op_key(op) for op in op_db if dtype in op.supported_dtypes("cpu")]
        tag, asked = options.tag, set((options.ops or "").split(",")) - {""}
        left = [name for name in names if name not in done and (not asked or name in asked)]
        if left:
            options.tag, options.ops = f"{tag}.{len(before)}", ",".join(left)
            parent(options)
        options.report_from = tag
        return harness.report(options, *harness.reread(options), 0)

    harness.parent = ordered


def finished(journal: Path) -> set[str]:
    """Return the operators whose samples a worker has all run."""
    last, found = None, set()
    for line in journal.read_text(encoding="utf-8").splitlines(keepends=True):
        event = json.loads(line) if line.endswith("\n") else {"ev": ""}
        if last is not None and (event["ev"] == "done" or event.get("op", last) != last):
            found.add(last)
        if event["ev"] == "nosamples":
            found.add(event["op"])
        last = event.get("op", last)
    return found


def judge(harness: ModuleType) -> None:
    """Have mismatches that are none of ETX end in their reason of CHECKED, which is checked."""
    compare, one = harness.compare, harness.one
    last: list[list[Any]] = []

    def kept(got: Any, want: Any, *rest: Any) -> Any:
        last[:] = [harness.flat_outputs(got), want]
        return compare(got, want, *rest)

    def judged(op: Any, sample: Any, *rest: Any) -> dict[str, Any]:
        found: dict[str, Any] = one(op, sample, *rest)
        if found["v"] != "mismatch":
            return found
        if are_ties(sample.input, *last):
            found["why"] += TIES
        elif getattr(torch, rest[-1]) in WIDER:
            module, tensors = harness.make_module(op, sample.transform(widened))
            exact = harness.flat_outputs(module(*tensors))
            if is_rounded(last[0], exact):
                found["why"] += EXACT
            elif is_near(*last, exact):
                found["why"] += NEAR
        return found

    harness.compare, harness.one = kept, judged


def loaded(path: str) -> ModuleType:
    """Return the harness, whose workers are processes of this file."""
    spec = importlib.util.spec_from_file_location("harness", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    harness = loaded(sys.argv[1])
    LoadError = harness.LoadError
    start = harness.subprocess.Popen
    harness.subprocess.Popen = lambda command, **options: start(
        [command[0], __file__, *command[1:]], **options
    )
    goes_on = "--go-on" in sys.argv
    sys.argv = [each for each in sys.argv[1:] if each != "--go-on"]
    remember()
    order(harness, goes_on)
    judge(harness)
    share(harness)
    harness.main()
