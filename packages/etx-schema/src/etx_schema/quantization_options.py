# SPDX-License-Identifier: BSD-3-Clause
"""The options that say how a model is quantized, of each command that has them: one table."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["CHOICES", "add_quantization_options"]

_FLAG: dict[str, Any] = {"action": "store_const", "const": True}
OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "--quantize": ({"metavar": "RECIPE"}, "int8, int8-dynamic, int8-weight or int4"),
    "--calibrate": (
        {"metavar": "FILE.npz"},
        "calls of the model: of each input an array of that name, split along its first axis, or "
        "arrays NAME.0, NAME.1, ... for calls of several sizes; as `etx run --input`",
    ),
    "--target-sqnr": (
        {"metavar": "DB", "type": float},
        "keep in float what costs most until the outputs have this signal to noise ratio",
    ),
    "--group-size": (
        {"metavar": "N", "type": int},
        "with int4: how many weights have one scale",
    ),
    "--keep-float": (
        {"metavar": "MODULE", "action": "append"},
        "leave this module in float, e.g. encoder.0; may be given several times",
    ),
    "--int8-io": (
        _FLAG,
        "with int8: inputs and outputs are int8, too; what the numbers mean is printed",
    ),
    "--int8-inputs": (
        {**_FLAG, "const": "inputs", "dest": "int8_io"},
        "as --int8-io, of the inputs alone",
    ),
    "--int8-outputs": (
        {**_FLAG, "const": "outputs", "dest": "int8_io"},
        "as --int8-io, of the outputs alone",
    ),
}
"""What `add_argument` takes of each flag, and its help."""


def _names() -> tuple[str, ...]:
    found = (more.get("dest", flag[2:].replace("-", "_")) for flag, (more, _) in OPTIONS.items())
    return tuple(name for name in dict.fromkeys(found) if name != "quantize")


CHOICES = _names()
"""The names of what goes with a recipe, in order."""


def add_quantization_options(
    parser: argparse.ArgumentParser, description: str, *, with_help: bool
) -> Any:
    """Add a group of these options, with a text to each or where another command has them."""
    group = parser.add_argument_group("quantization", description)
    for flag, (more, text) in OPTIONS.items():
        given: dict[str, Any] = {**more, "help": text} if with_help else more
        group.add_argument(flag, **given)
    return group
