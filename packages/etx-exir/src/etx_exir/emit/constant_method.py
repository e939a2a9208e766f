# SPDX-License-Identifier: BSD-3-Clause
"""Methods that return prepared values."""

from __future__ import annotations

from typing import Any

import torch
from etx_schema import Chain, ContainerMetadata, ExecutionPlan
from torch.utils import _pytree as pytree

from etx_exir.emit.arguments import encode_scalar
from etx_exir.emit.method import MethodEmitter
from etx_exir.emit.treespec import dump_treespec
from etx_exir.errors import EmitError
from etx_exir.ir.pools import Pools


def constant_method(name: str, value: Any, pools: Pools) -> ExecutionPlan:
    """Return the plan of a method that returns `value`; containers become several outputs."""
    emitter = MethodEmitter(name, None, pools)
    leaves, spec = pytree.tree_flatten(value)
    outputs = [_leaf(emitter, leaf) for leaf in leaves]
    _, no_inputs = pytree.tree_flatten(((), {}))
    return ExecutionPlan(
        name=name,
        container_meta_type=ContainerMetadata(
            encoded_inp_str=dump_treespec(no_inputs), encoded_out_str=dump_treespec(spec)
        ),
        values=emitter.values.items,
        inputs=[],
        outputs=outputs,
        chains=[Chain(inputs=[], outputs=[], instructions=[])],
        operators=[],
        delegates=[],
        non_const_buffer_sizes=[0],
    )


def _leaf(emitter: MethodEmitter, leaf: Any) -> int:
    if isinstance(leaf, torch.Tensor):
        return emitter.constant(leaf)
    if leaf is None:
        return emitter.values.null()
    if isinstance(leaf, int) and not -(2**63) <= leaf < 2**63:
        raise EmitError(f"constant method {emitter.name!r}: {leaf} does not fit in 64 bits")
    if isinstance(leaf, (bool, int, float, str)):
        return encode_scalar(emitter.values, leaf)
    raise EmitError(
        f"constant method {emitter.name!r}: a {type(leaf).__name__} cannot be stored; give int,"
        " float, bool, str, a tensor, or containers of them"
    )
