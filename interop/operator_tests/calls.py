# SPDX-License-Identifier: BSD-3-Clause
"""Calls the functions of ExecuTorch's operator suite, each with a lowering, a runtime and eager.

The same code runs where `executorch` is ETX and where it is ExecuTorch.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import pkgutil
import sys
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

SUITE = "executorch.backends.test.suite"
OPERATORS = f"{SUITE}.operators"
BOUND = 1e-3


def stand_in(wheel: Path) -> None:
    """Let the suite's functions be imported without its own flows and runner."""
    folder = wheel.joinpath(*SUITE.split("."))
    if not (folder / "operators").is_dir():
        raise SystemExit(f"{wheel} holds no {SUITE}; give the site-packages of ExecuTorch's wheel")
    suite, flow = ModuleType(SUITE), ModuleType(f"{SUITE}.flow")
    suite.__path__ = [str(folder)]
    flow.TestFlow = SimpleNamespace
    suite.flow = flow
    sys.modules |= {suite.__name__: suite, flow.__name__: flow}


class Runner:
    """What a function of the suite hands its model and inputs to."""

    def __init__(self, partitioner: Callable[[], Any] | None) -> None:
        self.partitioner = partitioner
        self._flow = SimpleNamespace(name="here", quantize=False)

    def lower_and_run_model(
        self,
        model: torch.nn.Module,
        inputs: tuple[Any, ...],
        generate_random_test_inputs: bool = True,
        dynamic_shapes: Any = None,
    ) -> None:
        """Lower, run and compare; the inputs are the function's own."""
        model = model.eval()
        with torch.no_grad():
            try:
                expected = tree_leaves(model(*copy.deepcopy(inputs)))
            except RuntimeError as error:
                raise unittest.SkipTest(f"eager refuses: {error}") from error
            exported = torch.export.export(model, inputs, dynamic_shapes=dynamic_shapes)
        got = executed(self.file(exported), tree_leaves(inputs))
        assert len(got) == len(expected), f"{len(got)} results, expected {len(expected)}"
        for actual, value in zip(got, expected, strict=True):
            torch.testing.assert_close(
                torch.as_tensor(actual),
                torch.as_tensor(value),
                rtol=BOUND,
                atol=BOUND,
                equal_nan=True,
                check_dtype=isinstance(value, torch.Tensor),
            )

    def file(self, exported: torch.export.ExportedProgram) -> bytes:
        exir = importlib.import_module("executorch.exir")
        partitioner = [self.partitioner()] if self.partitioner else None
        lowered = exir.to_edge_transform_and_lower(exported, partitioner=partitioner)
        return bytes(lowered.to_executorch().buffer)


def executed(buffer: bytes, inputs: list[Any]) -> list[Any]:
    """Run the method of a file."""
    runtime = importlib.import_module("executorch.runtime")
    program = runtime.Runtime.get().load_program(buffer)
    return list(program.load_method("forward").execute(inputs))


def functions(only: list[str]) -> Iterator[tuple[str, Callable[[Runner], None]]]:
    """Return the suite's functions by name, `add.test_add_dtype[float32]`."""
    package = importlib.import_module(OPERATORS)
    for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda each: each.name):
        name = found.name.removeprefix("test_")
        if not found.name.startswith("test_") or (only and name not in only):
            continue
        module = importlib.import_module(f"{OPERATORS}.{found.name}")
        for key, function in sorted(vars(module).items()):
            if key.startswith("test_") and inspect.isfunction(function):
                yield from by_dtype(f"{name}.{key}", function)


def by_dtype(name: str, function: Any) -> Iterator[tuple[str, Callable[[Runner], None]]]:
    rows: list[dict[str, Any]] = [{}]
    for mark in getattr(function, "pytestmark", ()):
        if mark.name == "parametrize":
            rows = [{**row, mark.args[0]: value} for row in rows for value in mark.args[1]]
    for row in rows:
        shown = ",".join(str(value).removeprefix("torch.") for value in row.values())
        label = f"{name}[{shown}]" if row else name
        yield label, lambda runner, row=row: function(runner, **row)


def outcomes(runner: Runner, only: list[str]) -> Iterator[tuple[str, str]]:
    """Call each function; yield its name with an empty string, or why it did not pass."""
    for name, call in functions(only):
        torch.manual_seed(0)
        try:
            call(runner)
        except Exception as error:
            first = str(error).strip().splitlines() or [""]
            yield name, f"{type(error).__name__}: {' '.join(first)[:400]}"
        else:
            yield name, ""
