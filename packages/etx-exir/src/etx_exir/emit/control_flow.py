# SPDX-License-Identifier: BSD-3-Clause
"""Control flow as jumps within the one chain of a method."""

from __future__ import annotations

from torch.fx import Node

from etx_exir.emit.cond import cond
from etx_exir.emit.jumps import Emit
from etx_exir.emit.loops import LOOPS
from etx_exir.emit.method import MethodEmitter, Reference
from etx_exir.errors import EmitError

OPERATORS = {"cond": cond, **LOOPS}


def emit(emitter: MethodEmitter, node: Node, nodes: Emit) -> Reference:
    """Append the steps of a control-flow operator and return its results."""
    name = getattr(node.target, "_name", str(node.target))
    if name not in OPERATORS:
        known = ", ".join(sorted(OPERATORS))
        raise EmitError(f"{emitter.where()}: the operator {name} cannot be emitted; known: {known}")
    return OPERATORS[name](emitter, node, nodes)
