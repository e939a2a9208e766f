# SPDX-License-Identifier: BSD-3-Clause
"""Where instructions come from: module path and source line, without absolute paths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import torch
from etx_schema import Frame, FrameList
from etx_schema.problem import DEBUG_KEY
from torch._ops import OpOverload
from torch.fx import Node

if TYPE_CHECKING:
    from etx_exir.plan.listing import Listing

__all__ = ["DEBUG_KEY", "debug_rows", "module_path", "origin", "source_line", "stack_frames"]

TORCH = str(PurePath(torch.__file__).parent)
FRAME = re.compile(r'File "([^"]+)", line (\d+)(?:, in (\S+))?(?:\n\s*(?!File )(\S.*))?')


def debug_rows(listing: Listing, constants: Mapping[int, str]) -> dict[str, Any]:
    """Return one row an instruction that is left, and names of constants by their data index."""
    rows = [
        None if step.source is None else origin(step.source)
        for step in listing.steps
        if not step.dead
    ]
    return {"instructions": rows, "constants": {str(k): v for k, v in sorted(constants.items())}}


def origin(node: Node) -> dict[str, str]:
    """Return the module path, the source line and the operator of `node`."""
    op = str(node.target) if isinstance(node.target, OpOverload) else node.name
    return {"module": module_path(node), "source": source_line(node), "op": op}


def stack_frames(listing: Listing) -> list[FrameList]:
    """Return the author's stack of every instruction that is left, with full paths."""
    return [FrameList(items=_frames(step.source)) for step in listing.steps if not step.dead]


def _frames(node: Node | None) -> list[Frame]:
    trace = node.meta.get("stack_trace") if node is not None else None
    return [
        Frame(filename=file, lineno=int(line), name=name, context=context)
        for file, line, name, context in FRAME.findall(trace or "")
    ]


def module_path(node: Node) -> str:
    """Return the path of the innermost module that `node` belongs to."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path = str(list(stack.values())[-1][0])
    if path.startswith("_empty_nn_module_stack"):
        return ""
    for prefix in ("L['self'].", "L['self']"):
        if path.startswith(prefix):
            return path[len(prefix) :]
    return path


def source_line(node: Node) -> str:
    """Return `file.py:12` of the innermost frame outside of torch."""
    trace = node.meta.get("stack_trace")
    frames = FRAME.findall(trace) if trace else []
    if not frames:
        return ""
    frame = next((f for f in reversed(frames) if not f[0].startswith(TORCH)), frames[-1])
    name, line = frame[:2]
    return f"{PurePath(name).name}:{line}"
