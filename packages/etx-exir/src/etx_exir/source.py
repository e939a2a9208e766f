# SPDX-License-Identifier: BSD-3-Clause
"""What a command line names: `model.py:Net`, `package.module:make`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from etx_schema import EtxError
from torch import nn

__all__ = ["load_factory", "load_partitioner"]


def load_factory(source: str) -> tuple[nn.Module, tuple[Any, ...], Any]:
    """Return the module, the example inputs and the dynamic shapes that `source` gives."""
    made = _call(source, "a factory")
    model, *rest = made if isinstance(made, tuple) else (made,)
    if not isinstance(model, nn.Module):
        raise EtxError(
            f"{source} returned {type(model).__name__}; expected a torch.nn.Module or "
            "(module, example_inputs[, dynamic_shapes])"
        )
    if len(rest) > 2:
        raise EtxError(
            f"{source} returned {1 + len(rest)} values; expected (module, example_inputs"
            "[, dynamic_shapes])"
        )
    inputs = rest[0] if rest else _inputs_of(model, source)
    if not isinstance(inputs, tuple):
        raise EtxError(
            f"{source}: example inputs are {type(inputs).__name__}; expected a tuple, for one "
            "input (x,)"
        )
    return model, inputs, rest[1] if len(rest) > 1 else getattr(model, "dynamic_shapes", None)


def load_partitioner(source: str) -> Any:
    """Return the partitioner that `source` names."""
    from etx_exir.backend import Partitioner

    made = _call(source, "a partitioner")
    if not isinstance(made, Partitioner):
        raise EtxError(f"{source} is a {type(made).__name__}; expected an etx_exir.Partitioner")
    return made


def _inputs_of(model: nn.Module, source: str) -> Any:
    inputs = getattr(model, "example_inputs", None)
    if inputs is None:
        if not inspect.signature(model.forward).parameters:
            return ()
        raise EtxError(
            f"{source} returned a {type(model).__name__} without example inputs; return "
            "(module, example_inputs), or give the module an attribute `example_inputs`"
        )
    return inputs() if callable(inputs) else inputs


def _call(source: str, what: str) -> Any:
    place, colon, name = source.rpartition(":")
    if not colon or not name:
        raise EtxError(f"{source!r} names no function: expected {what} as model.py:name")
    module = _load(place)
    if not callable(found := getattr(module, name, None)):
        names = [
            item
            for item, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        known = f"; it has {', '.join(names)}" if names else ""
        raise EtxError(f"{place} has no function or class {name!r}{known}")
    try:
        return found()
    except (Exception, SystemExit) as error:
        raise EtxError(f"{source}() raised {type(error).__name__}: {error}") from error


def _load(place: str) -> ModuleType:
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = Path(place)
        if not path.is_file():
            raise EtxError(f"cannot read {place}: no such file")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        sys.path.insert(0, str(path.parent))
        spec.loader.exec_module(module)
        return module
    except EtxError:
        raise
    except (Exception, SystemExit) as error:
        raise EtxError(f"cannot import {place}: {type(error).__name__}: {error}") from error
