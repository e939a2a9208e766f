# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a planned tensor: for pins and for messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from etx_schema import AllocationDetails, Tensor, dtype_name

from etx_exir.ir.provenance import module_path, source_line
from etx_exir.plan.linear_ir import Kind, Listing, Storage


@dataclass(frozen=True)
class PlannedTensor:
    """A tensor of a method: the node that makes it, the operator that writes it, its size.

    `kind` is ``input``, ``output``, ``state`` or ``intermediate``; `sizes` are upper bounds.
    """

    name: str
    op: str
    module: str
    source: str
    kind: str
    dtype: str
    sizes: tuple[int, ...]
    nbytes: int
    node: Any = None

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.sizes))
        text = f"{self.name}: {self.dtype}[{shape}], {self.nbytes:,} bytes"
        origin = ", ".join(part for part in (self.op, self.module, self.source) if part)
        return f"{text} ({origin})" if origin else text


def describe(listing: Listing) -> dict[int, PlannedTensor]:
    """Return what is known of every planned tensor, by value index."""
    ops: dict[int, str] = {}
    for step in listing.steps:
        for value in (*step.writes, *step.updates):
            ops.setdefault(value, step.op)
    kinds = {
        **dict.fromkeys(listing.outputs, "output"),
        **dict.fromkeys(listing.inputs, "input"),
        **dict.fromkeys(listing.state, "state"),
    }
    found = {}
    for value, place in listing.places.items():
        if place.root()[0].kind is not Kind.PLANNED:
            continue
        tensor = listing.values[value].val
        assert isinstance(tensor, Tensor)
        node = listing.nodes.get(value)
        name = place.storage.name or (node.name if node is not None else f"%{value}")
        found[value] = PlannedTensor(
            name=name,
            op=ops.get(value, ""),
            module=(node is not None and module_path(node)) or "",
            source="" if node is None else source_line(node),
            kind=kinds.get(value, "intermediate"),
            dtype=dtype_name(tensor.scalar_type),
            sizes=tuple(tensor.sizes),
            nbytes=place.nbytes,
            node=node,
        )
    return found


def placed(listing: Listing) -> dict[str, list[AllocationDetails]]:
    """Return where the tensors of each node of the graph lie, by its name, after planning."""
    found: dict[str, list[AllocationDetails]] = {}
    for value, node in listing.nodes.items():
        place = getattr(listing.values[value].val, "allocation_info", None)
        if place is not None:
            found.setdefault(node.name, []).append(place)
    return found


def by_storage(listing: Listing) -> dict[Storage, list[PlannedTensor]]:
    """Return the tensors of every planned storage, the one that is its root first."""
    tensors = describe(listing)
    found: dict[Storage, list[PlannedTensor]] = {}
    for value, tensor in tensors.items():
        found.setdefault(listing.places[value].root()[0], []).append(tensor)
    for group in found.values():
        group.sort(key=lambda tensor: -tensor.nbytes)
    return found
