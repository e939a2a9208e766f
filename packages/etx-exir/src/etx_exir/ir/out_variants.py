# SPDX-License-Identifier: BSD-3-Clause
"""The out variant of a functional operator: `aten.add.Tensor` -> `aten::add.out`.

Of an operator that is not torch's own and has none registered, the name follows from its own:
`ns::op` -> `ns::op.out`, `ns::op.kind` -> `ns::op.kind_out`; the arguments are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

from etx_exir.ir import dim_order

FACTORY_ARGUMENTS = frozenset({"dtype", "layout", "device", "pin_memory"})
TORCH_NAMESPACES = frozenset({"aten", "prim", "prims", "higher_order"})
PREFERRED = {
    "aten::arange.start": "start_out",
    "aten::var.default": "correction_out",
    "aten::sum.default": "IntList_out",
    "aten::empty.memory_format": "out",
}
KERNEL_NAMES = {
    "quantized_decomposed::choose_qparams.tensor": "Tensor_out",
    "quantized_decomposed::quantize_per_tensor.tensor": "Tensor_out",
    "quantized_decomposed::dequantize_per_tensor.tensor": "Tensor_out",
}
"""Out variants of operators that are not torch's whose kernels do not follow the naming rule."""


@dataclass(frozen=True)
class Argument:
    """One argument of an out variant, with the default that is spelled out when it is absent."""

    name: str
    type: Any
    default: Any
    required: bool


@dataclass(frozen=True)
class OutVariant:
    """Name, overload and arguments of an operator that writes into tensors it is given."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    out_names: tuple[str, ...]
    out_list: bool

    @property
    def key(self) -> str:
        """Return the name under which kernels are registered."""
        return f"{self.name}.{self.overload}" if self.overload else self.name


@cache
def out_variant(op: OpOverload) -> OutVariant | None:
    """Return the out variant of `op`, or None when it has none."""
    name = op._schema.name
    functional = [_argument(a) for a in op._schema.arguments]
    preferred = PREFERRED.get(f"{name}.{op._overloadname}")
    best: tuple[int, Any] | None = None
    for overload in _overloads(op):
        schema = overload._schema
        rank = 0 if schema.overload_name == preferred else _distance(functional, schema)
        if rank is not None and (best is None or rank < best[0]):
            best = (rank, schema)
    if best is not None:
        return _from_schema(best[1])
    if op.namespace not in TORCH_NAMESPACES and _is_functional(op):
        return _derived(op)
    return None


def _is_functional(op: OpOverload) -> bool:
    """Tell whether `op` only returns tensors, all of them new."""
    schema = op._schema
    aliases = any(r.alias_info is not None for r in schema.returns)
    tensors = [str(r.type) == "Tensor" for r in schema.returns]
    return bool(tensors) and all(tensors) and not aliases and not schema.is_mutable


def _overloads(op: OpOverload) -> list[OpOverload]:
    packet = op.overloadpacket
    found = [getattr(packet, overload) for overload in packet.overloads()]
    return [o for o in found if any(a.is_out for a in o._schema.arguments)]


def _argument(argument: Any) -> Argument:
    required = not argument.has_default_value()
    default = None if required else argument.default_value
    return Argument(argument.name, argument.type, default, required)


def _distance(functional: list[Argument], schema: Any) -> int | None:
    """Return how far the inputs of `schema` are from `functional`; None when they do not fit."""
    inputs = [_argument(a) for a in schema.arguments if not a.is_out]
    expected = [(a.name, str(a.type)) for a in functional]
    given = [(a.name, str(a.type)) for a in inputs]
    if expected == given:
        return 0
    if [w for w in expected if w[0] not in FACTORY_ARGUMENTS or w in given] == given:
        return 1
    return None


def _from_schema(schema: Any) -> OutVariant:
    outs = [a for a in schema.arguments if a.is_out]
    return OutVariant(
        name=_name_in_file(schema.name),
        overload=schema.overload_name,
        arguments=tuple(_argument(a) for a in schema.arguments if not a.is_out),
        out_names=tuple(a.name for a in outs),
        out_list=isinstance(outs[0].type, torch.ListType),
    )


def _name_in_file(name: str) -> str:
    namespace, _, rest = name.partition("::")
    return f"{dim_order.FILE_NAMESPACE}::{rest}" if namespace == dim_order.NAMESPACE else name


def _derived(op: OpOverload) -> OutVariant:
    """Follow the naming rule for operators whose out variants exist only on the device."""
    schema = op._schema
    functional = [_argument(a) for a in schema.arguments]
    factory = op.namespace == dim_order.NAMESPACE
    kept = [a for a in functional if not (factory and a.name in FACTORY_ARGUMENTS)]
    overload = op._overloadname
    by_rule = "out" if overload == "default" else f"{overload}_out"
    count = len(schema.returns)
    return OutVariant(
        name=_name_in_file(schema.name),
        overload=KERNEL_NAMES.get(f"{schema.name}.{overload}", by_rule),
        arguments=tuple(kept),
        out_names=("out",) if count == 1 else tuple(f"out{i}" for i in range(count)),
        out_list=False,
    )
