# SPDX-License-Identifier: BSD-3-Clause
"""The harness as it is, where torch's tables of decompositions are made once a process.

usage: quick.py HARNESS [ITS ARGUMENTS]

torch.export collects what is composite, and registers its own way of taking each apart, for every
program: 0.25 s, of which nothing depends on the program. A third of a second a sample becomes a
fifteenth. Where float16 or bfloat16 differ from eager, they are compared with float64; where places
do, what is there is.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import torch
from run import EXACT, TIES
from torch._export import utils
from torch.export import decomp_utils, exported_program

Table = dict[Any, Callable[..., Any]]
WIDER = {torch.float16: torch.float64, torch.bfloat16: torch.float64}


def remember() -> None:
    """Have torch.export keep what it makes for each program, as long as no operator is added."""
    find = utils._collect_all_valid_cia_ops
    override = exported_program._override_composite_implicit_decomp
    listed = torch._C._dispatch_get_registrations_for_dispatch_key

    @functools.lru_cache(maxsize=1)
    def found(_count: int) -> frozenset[Any]:
        return frozenset(find())

    def collect() -> frozenset[Any]:
        return found(len(listed("CompositeImplicitAutograd")))

    def overridden(table: Table) -> AbstractContextManager[None]:
        return override({op: call for op, call in table.items() if not as_torch_does(call)})

    for module in (utils, decomp_utils, exported_program):
        module._collect_all_valid_cia_ops = collect
    table = dict(exported_program.default_decompositions().items())
    exported_program.default_decompositions = lambda: dict(table)
    exported_program._override_composite_implicit_decomp = overridden
    preservable = functools.lru_cache(maxsize=None)(exported_program._is_preservable_cia_op)
    exported_program._is_preservable_cia_op = preservable


def as_torch_does(call: Callable[..., Any]) -> bool:
    """Tell whether `call` takes a composite operator apart as torch would without it."""
    inner = call.func if isinstance(call, functools.partial) else call
    return inner.__qualname__.startswith("_get_decomp_for_cia.")


def judge(harness: ModuleType) -> None:
    """Have mismatches that are none of ETX end in EXACT or TIES, after the reason is checked."""
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
            if is_rounded(last[0], harness.flat_outputs(module(*tensors))):
                found["why"] += EXACT
        return found

    harness.compare, harness.one = kept, judged


def are_ties(x: Any, found: list[Any], expected: list[Any]) -> bool:
    """Tell whether places differ, once each, and what `x` has there does not; others are equal."""
    differ = [
        (a, b)
        for a, b in zip(found, expected, strict=True)
        if not (isinstance(a, torch.Tensor) and torch.equal(a, b))
    ]
    return isinstance(x, torch.Tensor) and all(
        isinstance(a, torch.Tensor)
        and a.dtype == torch.int64
        and any(name_same(x, dim, a, b) for dim in range(x.dim()))
        for a, b in differ
    )


def name_same(x: torch.Tensor, dim: int, *places: torch.Tensor) -> bool:
    a, b = (i if i.dim() == x.dim() else i.unsqueeze(dim) for i in places)
    if any(n != m for d, (n, m) in enumerate(zip(a.shape, x.shape, strict=True)) if d != dim):
        return False
    once = a.sort(dim).values.diff(dim=dim).ne(0).all()
    return bool(once) and torch.equal(x.gather(dim, a), x.gather(dim, b))


def widened(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(WIDER.get(value.dtype, value.dtype))
    return WIDER.get(value, value) if isinstance(value, torch.dtype) else value


def is_rounded(found: list[Any], exact: list[Any]) -> bool:
    """Tell whether numbers are those of float64 to one step of their dtype, and others equal."""
    for a, b in zip(found, exact, strict=True):
        if not isinstance(a, torch.Tensor) or a.dtype not in WIDER:
            if not (torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b):
                return False
        else:
            info = torch.finfo(a.dtype)
            step = {"rtol": info.eps, "atol": info.smallest_normal * info.eps}
            if not torch.allclose(a.double(), b.to(a.dtype).double(), equal_nan=True, **step):
                return False
    return True


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
    sys.argv = sys.argv[1:]
    remember()
    judge(harness)
    harness.main()
