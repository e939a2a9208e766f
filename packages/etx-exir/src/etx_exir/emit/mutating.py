# SPDX-License-Identifier: BSD-3-Clause
"""Operators of users that write to their arguments, as `torch.export` wraps them.

``auto_functionalized(op, c=c, x=x)`` -> ``c' = clone(c); op(c', x)``; its results are those of
`op`, then the new value of each argument written to.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from etx_exir.emit.arguments import encode
from etx_exir.emit.method import MethodEmitter, Reference
from etx_exir.errors import EmitError

WRAPPERS = (
    torch.ops.higher_order.auto_functionalized,
    torch.ops.higher_order.auto_functionalized_v2,
)


def emit(emitter: MethodEmitter, node: Node) -> list[Reference]:
    """Append the call of a wrapped operator on copies of what it writes to."""
    op: Any = node.args[0]
    given: dict[str, Any] = dict(node.kwargs)
    assert isinstance(op, OpOverload)
    schema = op._schema
    written = [
        a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write
    ]
    bases: Any = given.get("_all_bases")
    if bases is None:
        sources = {name: given[name] for name in written}
    else:
        sources = {name: bases[_base_of(emitter, name, given)] for name in written}
    kept = list(sources.values()) if bases is None else list(bases)
    if len(set(kept)) != len(kept) or len(kept) != len(written):
        raise EmitError(f"{emitter.where()}: {op} writes twice to one tensor; clone one of the two")
    copies = {source: emitter.clone(emitter.lookup(source)) for source in kept}
    args = [
        copies[sources[argument.name]]
        if argument.name in sources
        else encode(emitter.values, emitter.lookup, given.get(argument.name), argument.type)
        for argument in schema.arguments
    ]
    returns = _returns(emitter, op, node)
    name, overload = _key(op, bool(returns))
    spelled = [*args, *returns]
    if returns:
        spelled.append(returns[0] if len(returns) == 1 else emitter.values.tensor_list(returns))
    changed = list(copies.values())
    reads = [index for index in args if index not in changed]
    emitter.call(name, overload, spelled, reads, returns, changed)
    results: list[Reference] = [*returns] if returns else [None]
    return results + changed


def _base_of(emitter: MethodEmitter, name: str, given: dict[str, Any]) -> int:
    """Return which of the bases argument `name` is; it must be all of it."""
    prefix = f"_{name}_"
    described = sorted(key for key in given if key.startswith(prefix))
    if described != [f"{prefix}base_index"]:
        raise EmitError(
            f"{emitter.where()}: argument {name!r} is a view of the tensor that is written to;"
            " give the operator the whole tensor, or a clone that is copied back"
        )
    return int(given[f"{prefix}base_index"])


def _returns(emitter: MethodEmitter, op: OpOverload, node: Node) -> list[int]:
    count = len(op._schema.returns)
    fakes = list(node.meta["val"])[:count]
    if not all(isinstance(fake, torch.Tensor) for fake in fakes):
        raise EmitError(f"{emitter.where()}: {op} returns something that is not a tensor")
    return [emitter.fresh(fake) for fake in fakes]


def _key(op: OpOverload, returns: bool) -> tuple[str, str]:
    """Return name and overload of the kernel: an out variant where `op` returns tensors."""
    overload = "" if op._overloadname == "default" else op._overloadname
    if not returns:
        return op._schema.name, overload
    return op._schema.name, f"{overload}_out" if overload else "out"
