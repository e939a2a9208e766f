# SPDX-License-Identifier: BSD-3-Clause
"""What is on the model's side: a factory of a module, exported here, or an exported program."""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from etx_exir.load_model import load_factory
from etx_exir.lower.capture import capture
from etx_exir.quantization import check_options, quantize_sources
from etx_schema import EtxError, EtxWarning
from torch import nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

__all__ = ["Model", "Quantization", "flat_call", "is_exported", "load_models"]

SUFFIX = ".pt2"


@dataclass(frozen=True)
class Quantization:
    """What `etx compile` was given: so the model is quantized again."""

    quantize: str
    calibrate: str | None = None
    target_sqnr: float | None = None
    group_size: int | None = None
    keep_float: list[str] | None = None
    int8_io: bool | str | None = None


@dataclass
class Model:
    """A method of a model: what exports it, a call with its example inputs, its module if any."""

    export: Callable[[], ExportedProgram]
    call: list[Any]
    module: nn.Module | None = None

    @cached_property
    def program(self) -> ExportedProgram:
        """The exported program, of which torch warns as it did at the compiler."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.export()

    def outputs(self, call: Any) -> list[Any]:
        """Return what the module itself returns for a flat call."""
        assert self.module is not None
        spec: Any = self.program.call_spec.in_spec
        args, kwargs = pytree.tree_unflatten(list(call), spec)
        with torch.no_grad():
            return pytree.tree_leaves(self.module(*args, **kwargs))


def is_exported(name: str) -> bool:
    """Whether a name is that of an exported program's file."""
    return name.endswith(SUFFIX)


def load_models(name: str, quantized: Quantization | None = None) -> Mapping[str, Model]:
    """Return the methods of `net.py:net`, or the one of `net.pt2`: EtxError where it cannot."""
    if is_exported(name):
        if quantized is not None:
            raise EtxError(f"--quantize is of a model that is made, not of {name}")
        return {"forward": _load(name)}
    found, sources = {}, load_factory(name)
    if quantized is not None:
        options = argparse.Namespace(**vars(quantized), quantize_report=None)
        check_options(options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EtxWarning)
            sources, _ = quantize_sources(sources, options, lambda *_: None)
    for method, source in sources.items():
        call = flat_call((source.inputs, source.kwargs))
        found[method] = Model(partial(capture, *source), call, source.module)
    return found


def _load(name: str) -> Model:
    if not Path(name).is_file():
        raise EtxError(f"{name}: no such file; torch.export.save(program, {name!r}) writes one")
    said = logging.getLogger("torch.export")
    level = said.level
    try:
        said.setLevel(logging.CRITICAL)  # what it logs of a bad file is a traceback
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.load(name)
    except Exception as error:
        reason = (str(error) or type(error).__name__).strip().splitlines()[0]
        raise EtxError(f"{name} is not an exported program: {reason}") from error
    finally:
        said.setLevel(level)
    return Model(lambda: program, flat_call(program.example_inputs or ()))


def flat_call(call: Any) -> list[Any]:
    """Return the leaves of the arguments of a call."""
    leaves = pytree.tree_leaves(tuple(call), is_leaf=lambda item: item is None)
    return [x.detach() if isinstance(x, torch.Tensor) else x for x in leaves]
