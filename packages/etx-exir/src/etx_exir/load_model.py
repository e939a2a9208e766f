# SPDX-License-Identifier: BSD-3-Clause
"""What a command line names: `model.py:Net`, `package.module:make`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from etx_schema import EtxError
from torch import nn

__all__ = ["Source", "load_factory", "load_function", "load_partitioner"]


FORMS = (
    "a torch.nn.Module with `example_inputs`, (module, inputs[, dynamic_shapes]) where inputs is a "
    "tuple, or a dict of keyword inputs, (module, inputs, keyword_inputs, dynamic_shapes), or a "
    "dict of these by method name"
)


class Source(NamedTuple):
    """A method to be: a module, its example inputs, and which of their sizes may change."""

    module: nn.Module
    inputs: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic_shapes: Any


def load_factory(source: str) -> dict[str, Source]:
    """Return what `source` gives, by the name of the method."""
    made = _call(source, "a factory")
    if isinstance(made, dict):
        if not made or not all(isinstance(name, str) for name in made):
            raise EtxError(f"{source} returned a dict of {list(made)}; expected names of methods")
        return {name: _read(item, f"{source}, method {name!r}") for name, item in made.items()}
    return {"forward": _read(made, source)}


def _read(made: Any, source: str) -> Source:
    model, *rest = made if isinstance(made, tuple) else (made,)
    if not isinstance(model, nn.Module):
        raise EtxError(f"{source} returned {type(model).__name__}; expected {FORMS}")
    if len(rest) > 3:
        raise EtxError(f"{source} returned {1 + len(rest)} values; expected {FORMS}")
    inputs = rest[0] if rest else _inputs_of(model, source)
    kwargs = rest[1] if len(rest) == 3 else getattr(model, "example_kwargs", {})
    if isinstance(inputs, dict):
        kwargs = {**inputs, **kwargs}
        inputs = ()
    if not isinstance(inputs, tuple):
        raise EtxError(
            f"{source}: example inputs are {type(inputs).__name__}; expected a tuple, for one "
            "input (x,), or a dict of keyword inputs"
        )
    if not isinstance(kwargs, dict):
        raise EtxError(f"{source}: keyword inputs are {type(kwargs).__name__}; expected a dict")
    shapes = rest[-1] if len(rest) > 1 else getattr(model, "dynamic_shapes", None)
    return Source(model, inputs, kwargs, shapes)


def load_partitioner(source: str) -> Any:
    """Return the partitioner that `source` names."""
    from etx_exir.delegation.backend import Partitioner

    made = _call(source, "a partitioner")
    if not isinstance(made, Partitioner):
        raise EtxError(f"{source} is a {type(made).__name__}; expected an etx_exir.Partitioner")
    return made


def _inputs_of(model: nn.Module, source: str) -> Any:
    inputs = getattr(model, "example_inputs", None)
    if inputs is None:
        if hasattr(model, "example_kwargs") or not inspect.signature(model.forward).parameters:
            return ()
        raise EtxError(
            f"{source} returned a {type(model).__name__} without example inputs; return "
            "(module, example_inputs), or give the module an attribute `example_inputs` (and "
            "`example_kwargs` for keyword inputs)"
        )
    return inputs() if callable(inputs) else inputs


def _call(source: str, what: str) -> Any:
    found = load_function(source, what)
    try:
        return found()
    except (Exception, SystemExit) as error:
        raise EtxError(f"{source}() raised {type(error).__name__}: {error}") from error


def load_function(source: str, what: str) -> Callable[..., Any]:
    """Return the function or class `model.py:name`, which is `what`: EtxError where it is not."""
    place, colon, name = source.rpartition(":")
    if not colon or not name:
        raise EtxError(f"{source!r}: expected {what} as model.py:name")
    module = _load(place)
    if not callable(found := getattr(module, name, None)):
        names = [
            item
            for item, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        known = f"; it has {', '.join(names)}" if names else ""
        raise EtxError(f"{place} has no function or class {name!r}{known}")
    function: Callable[..., Any] = found
    return function


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
