# SPDX-License-Identifier: BSD-3-Clause
"""What a file's method takes and what a model does: whether one may be of the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etx_schema import EtxError, ExecutionPlan
from etx_schema import Tensor as WireTensor
from etx_schema.dtypes import dtype_name
from torch import Tensor
from torch.fx import Node

from etx_devtools.compare.arrays import dtype_text

__all__ = ["check_inputs", "kind_of_node", "kind_of_value"]


def check_inputs(method: str, plan: ExecutionPlan, nodes: Sequence[Node]) -> None:
    """Refuse a model, which takes `nodes`, that takes other inputs than the file: EtxError."""
    values = [plan.values[slot].val for slot in plan.inputs]
    if len(values) == len(nodes) and all(map(_may_be, values, nodes)):
        return
    shown = [", ".join(map(kind_of_value, values)), ", ".join(map(kind_of_node, nodes))]
    raise EtxError(
        f"the model is not the one of this file: {method} takes ({shown[0]}), the model "
        f"({shown[1]}); give the module that the file was compiled from, with the same dynamic "
        "shapes and --quantize"
    )


def _may_be(value: Any, node: Node) -> bool:
    fake = node.meta.get("val")
    if not isinstance(value, WireTensor) or not isinstance(fake, Tensor):
        return isinstance(value, WireTensor) == isinstance(fake, Tensor)
    if len(value.sizes) != fake.dim() or dtype_name(value.scalar_type) != dtype_text(fake.dtype):
        return False
    pairs = zip(value.sizes, fake.shape, strict=True)
    return bool(value.shape_dynamism) or all(not isinstance(b, int) or a == b for a, b in pairs)


def kind_of_value(wire: Any) -> str:
    """Return dtype and shape of a file's value, all of it `?` where one size is not fixed."""
    if not isinstance(wire, WireTensor):
        return type(wire).__name__
    shape = ["?" if wire.shape_dynamism else str(size) for size in wire.sizes]
    return f"{dtype_name(wire.scalar_type)}[{', '.join(shape)}]"


def kind_of_node(node: Node) -> str:
    """Return the same of a node."""
    value = node.meta.get("val")
    if not isinstance(value, Tensor):
        return type(value).__name__
    is_static = all(isinstance(size, int) for size in value.shape)
    shape = [str(size) if is_static else "?" for size in value.shape]
    return f"{dtype_text(value.dtype)}[{', '.join(shape)}]"
