# SPDX-License-Identifier: BSD-3-Clause
"""The harness as it is, where torch's tables of decompositions are made once a process.

usage: quick.py HARNESS [ITS ARGUMENTS]

torch.export collects what is composite, and registers its own way of taking each apart, for every
program: 0.25 s, of which nothing depends on the program. A third of a second a sample becomes a
fifteenth.
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
from torch._export import utils
from torch.export import decomp_utils, exported_program

Table = dict[Any, Callable[..., Any]]


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
    harness.main()
