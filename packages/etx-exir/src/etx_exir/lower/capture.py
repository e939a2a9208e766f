# SPDX-License-Identifier: BSD-3-Clause
"""From a module to an exported program; what `torch.export` refuses becomes one clear error."""

from __future__ import annotations

import io
import logging
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from etx_exir.errors import CaptureError
from etx_exir.ir.recurrent_nets import of_any_length
from etx_exir.progress import report

__all__ = ["capture"]

_USER_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_FOREIGN = ("<", sysconfig.get_path("stdlib"), str(Path(__file__).parent))
_ADVICE = (
    (
        r"data-dependent|GuardOnDataDependent|Could not guard",
        "a Python branch depends on values: use torch.cond, or torch._check to state a bound",
    ),
    (
        r"Constraints violated|dynamic_shapes|not.*satisf",
        "dynamic_shapes disagree with the model: the message above names the dimension",
    ),
    (
        r"missing (\d+|a) required|(too many|takes \d+) positional|unexpected keyword",
        "example_inputs is a tuple with one entry for each positional argument of forward; "
        "keyword inputs go into example_kwargs, a dict by name",
    ),
)


def capture(
    model: nn.Module | ExportedProgram,
    example_inputs: tuple[Any, ...],
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> ExportedProgram:
    """Export `model` in evaluation mode; its mode is what it was afterwards."""
    if isinstance(model, ExportedProgram):
        return model
    if not isinstance(model, nn.Module):
        raise CaptureError(
            f"expected a torch.nn.Module, got {type(model).__name__}; wrap functions in a module "
            "whose forward calls them"
        )
    if not isinstance(example_inputs, tuple):
        raise CaptureError(
            f"example_inputs: expected a tuple, got {type(example_inputs).__name__}; for one "
            "input write (x,)"
        )
    report("export")
    with _evaluation(model):
        try:
            with _held_back() as said, of_any_length():
                program = torch.export.export(
                    model,
                    example_inputs,
                    dict(example_kwargs or {}),
                    dynamic_shapes=dynamic_shapes,
                )
        except Exception as error:
            raise CaptureError(_explain(model, error)) from error
    for stream, text in zip((sys.stdout, sys.stderr), said, strict=True):
        if stream is not None and text.getvalue():
            stream.write(text.getvalue())
    return program


@contextmanager
def _evaluation(model: nn.Module) -> Iterator[None]:
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def _held_back() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Keep what is printed meanwhile, and yield it; of what fails the error says enough."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    said = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(said[0]), redirect_stderr(said[1]):
            yield said
    finally:
        logger.setLevel(level)


def _explain(model: nn.Module, error: Exception) -> str:
    text = str(error).strip() or repr(error)
    lines = [line for line in text.splitlines() if line.strip()]
    parts = [f"{type(model).__name__} cannot be exported: {type(error).__name__}: {lines[0]}"]
    parts += [f"    {line.strip()}" for line in lines[1:4]]
    if line := _user_line(error, text):
        parts.append(f"    at {line}")
    for pattern, advice in _ADVICE:
        if re.search(pattern, text):
            parts.append(f"    {advice}")
            break
    return "\n".join(parts)


def _user_line(error: Exception, text: str) -> str:
    """Return the innermost line that is neither torch's, Python's nor ours."""
    frames: list[tuple[str, int]] = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append((traceback.tb_frame.f_code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    frames += [(m["file"], int(m["line"])) for m in _USER_FRAME.finditer(text)]
    for name, line in reversed(frames):
        if not name.startswith(_FOREIGN) and "/torch/" not in name:
            return f"{name}:{line}"
    return ""
