# SPDX-License-Identifier: BSD-3-Clause
"""Where a node comes from: the module that made it and the author's line."""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

import torch
from torch.fx import Node

__all__ = [
    "DECLINED",
    "Line",
    "is_known",
    "lines",
    "module_path",
    "module_stack",
    "nearest_known",
    "source_line",
    "source_path",
]

DECLINED = "declined"
"""At a node, by the name of each pass that left it as it is for a reason, that reason."""

TORCH = str(PurePath(torch.__file__).parent) + os.sep
INSTALLED = tuple(
    str(PurePath(sysconfig.get_path(name))) + os.sep for name in ("purelib", "platlib", "stdlib")
)
FRAME = re.compile(r'File "([^"]+)", line (\d+)(?:, in (\S+))?(?:\n\s*(?!File )(\S.*))?')
PREFIXES = ("L['self'].", "L['self']")


class Line(NamedTuple):
    """One frame of a stack: file with its folder, line from 1, function and text."""

    file: str
    number: int
    function: str
    text: str


def lines(node: Node | None) -> list[Line]:
    """Return the stack that made `node`, outermost first, without generated code."""
    trace = node.meta.get("stack_trace") if node is not None else None
    found = FRAME.findall(trace or "")
    return [Line(f, int(n), name, text) for f, n, name, text in found if not f.startswith("<")]


def module_stack(node: Node) -> list[tuple[str, str]]:
    """Return path and qualified class of each module around `node`, outermost first."""
    stack = node.meta.get("nn_module_stack") or {}
    return [
        (_clean(str(path)), kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}")
        for path, kind in stack.values()
        if not str(path).startswith("_empty_nn_module_stack")
    ]


def module_path(node: Node) -> str | None:
    """Return the path of the innermost module of `node`: empty for the root, None if unknown."""
    stack = node.meta.get("nn_module_stack")
    if not stack or str(list(stack.values())[-1][0]).startswith("_empty_nn_module_stack"):
        return None
    return _clean(str(list(stack.values())[-1][0]))


def _clean(path: str) -> str:
    for prefix in PREFIXES:
        if path.startswith(prefix):
            return path[len(prefix) :]
    return path


def source_line(node: Node) -> str:
    """Return `file.py:12`, without a folder, of the author's line, or an empty string."""
    line = _authors(lines(node))
    return f"{PurePath(line.file).name}:{line.number}" if line else ""


def source_path(node: Node) -> str:
    """Return `folder/file.py:12` of the author's line, or an empty string."""
    line = _authors(lines(node))
    return f"{line.file}:{line.number}" if line else ""


def is_known(node: Node) -> bool:
    """Tell whether a line made `node`, or a module below the root, where tools add nodes."""
    return bool(module_path(node) or source_line(node))


def nearest_known(node: Node) -> Node:
    """Return `node`, or where nothing says where it comes from the nearest node that is known.

    That is what made its value, else what takes it: the model's inputs and outputs are quantized by
    nodes that no module made. Without either it is `node`.
    """
    for step in (_producers, _takers):
        seen, front = {node}, [node]
        while front:
            for found in front:
                if is_known(found):
                    return found
            front = [one for found in front for one in step(found) if one not in seen]
            seen.update(front)
    return node


def _producers(node: Node) -> list[Node]:
    return [one for one in node.all_input_nodes if one.op == "call_function"]


def _takers(node: Node) -> list[Node]:
    return [one for one in node.users if one.op == "call_function"]


def _authors(stack: Sequence[Line]) -> Line | None:
    """Return the innermost line outside of installed packages, else outside of torch, else any."""
    outside = [line for line in stack if not line.file.startswith(TORCH)]
    own = [line for line in outside if not line.file.startswith(INSTALLED)]
    found = own or outside or stack
    return found[-1] if found else None
