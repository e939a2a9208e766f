# SPDX-License-Identifier: BSD-3-Clause
"""What takes the place of a call that cannot be lowered, so that all that follows is looked at too.

``op(x)`` -> ``etx_gap::stand_in([x], "op", why, key)``. The emitter reports every one of them with
what else is missing; none reaches a file.
"""

from __future__ import annotations

import itertools
import operator
import re
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from etx_exir.ir.control_flow_graphs import graph_modules

__all__ = ["STAND_IN", "called", "leave_out", "put_in_place", "reason"]

torch.library.define("etx_gap::stand_in", "(Tensor[] given, str op, str why, int key) -> Tensor[]")
STAND_IN = torch.ops.etx_gap.stand_in.default
EXECUTING = re.compile(r"While executing %(\S+) :[^\n]*?call_function\[target=([^\]]+)\]")
CONTEXT = re.compile(r"\n\s*\n?While executing %|\nOriginal traceback:|\nFrom node ")
ALIAS = re.compile(r"operator whose output has alias annotations")

_RESULTS: dict[int, tuple[Tensor, ...]] = {}
_KEYS = itertools.count()


@torch.library.register_fake("etx_gap::stand_in")  # type: ignore[untyped-decorator]
def _fake(given: Any, op: str, why: str, key: int) -> list[Tensor]:
    return [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in _RESULTS[key]]


@torch.library.impl("etx_gap::stand_in", "CPU")
def _run(given: Any, op: str, why: str, key: int) -> list[Tensor]:
    raise RuntimeError(f"{op}: {why}")


def called(node: Node) -> str:
    """Return the operator that `node` calls, or that it stands for."""
    return str(node.args[1] if node.target is STAND_IN else node.target)


def put_in_place(node: Node, graph: Graph, why: str) -> bool:
    """Let a stand-in take the place of `node`; return whether its results allow it."""
    value = node.meta.get("val")
    results: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]
    if not results or not all(isinstance(result, Tensor) for result in results):
        return False
    key = next(_KEYS)
    _RESULTS[key] = tuple(results)
    leaves = pytree.tree_leaves((node.args, node.kwargs))
    given = [n for n in leaves if isinstance(n, Node) and isinstance(n.meta.get("val"), Tensor)]
    with graph.inserting_before(node):
        call = graph.call_function(STAND_IN, (given, str(node.target), why, key))
        call.meta = {**node.meta, "val": results}
        new = call
        if value is results[0]:
            new = graph.call_function(operator.getitem, (call, 0))
            new.meta = dict(node.meta)
    node.replace_all_uses_with(new)
    graph.erase_node(node)
    return True


def leave_out(program: ExportedProgram, error: Exception) -> bool:
    """Let a stand-in take the place of the call that raised `error`; return whether it is known."""
    found = EXECUTING.search(str(error))
    if found is None:
        return False
    target = found[2].removeprefix("torch.ops.")
    for module in graph_modules(program.graph_module):
        calls = [n for n in module.graph.nodes if n.op == "call_function"]
        culprits = [n for n in calls if str(n.target) == target]
        culprits.sort(key=lambda n: n.name != found[1])
        if culprits and put_in_place(culprits[0], module.graph, reason(error)):
            module.recompile()
            return True
    return False


def reason(error: Exception) -> str:
    """Return in one line why an operator could not be decomposed."""
    text = CONTEXT.split(str(error))[0].strip() or type(error).__name__
    if ALIAS.search(text):
        return (
            "its result shares memory with an argument, which cannot be written without side "
            "effects; let it return a new tensor, or nothing but write to its argument"
        )
    return f"it cannot be decomposed: {text.splitlines()[0]}"
