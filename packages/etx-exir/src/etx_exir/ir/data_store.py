# SPDX-License-Identifier: BSD-3-Clause
"""Blobs that a backend stores by name beside its own: each name once, equal bytes once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from etx_schema import NamedBlob, TensorLayout
from etx_schema import ScalarType as WireType

from etx_exir.errors import BackendError

__all__ = ["NamedDataStore", "NamedDataStoreOutput"]

Data = bytes | bytearray | memoryview | torch.Tensor


@dataclass
class NamedDataStoreOutput:
    """Blobs by name: those of the `.pte`, and by tag those of each `<tag>.ptd`."""

    pte_data: dict[str, NamedBlob] = field(default_factory=dict)
    external_data: dict[str, dict[str, NamedBlob]] = field(default_factory=dict)


class NamedDataStore:
    """Collects named data; a name that is given twice must hold the same bytes."""

    def __init__(self) -> None:
        self._output = NamedDataStoreOutput()
        self._places: dict[str, str | None] = {}

    def add_named_data(
        self,
        key: str,
        data: Data,
        alignment: int | None = 1,
        external_tag: str | None = None,
        tensor_layout: TensorLayout | None = None,
    ) -> None:
        """Store `data` under `key`, at a multiple of `alignment` bytes.

        With `external_tag` it goes to `<external_tag>.ptd`, where a tensor keeps its layout.
        """
        alignment = 1 if alignment is None else alignment
        if alignment < 1:
            raise BackendError(f"named data {key!r}: alignment {alignment}; expected 1 or more")
        if isinstance(data, torch.Tensor):
            tensor_layout = tensor_layout or _layout(data)
            data = _bytes(data)
        layout = tensor_layout if external_tag is not None else None
        self._add(key, NamedBlob(data, alignment, layout), external_tag)

    def merge_named_data_store(
        self, other: NamedDataStoreOutput | Mapping[str, NamedBlob | bytes]
    ) -> None:
        """Add what another store holds; a plain dict of bytes is data for the `.pte`."""
        if not isinstance(other, NamedDataStoreOutput):
            other = NamedDataStoreOutput(
                {k: b if isinstance(b, NamedBlob) else NamedBlob(b) for k, b in other.items()}
            )
        for key, blob in other.pte_data.items():
            self._add(key, blob, None)
        for tag, blobs in other.external_data.items():
            for key, blob in blobs.items():
                self._add(key, blob, tag)

    def get_named_data_store_output(self) -> NamedDataStoreOutput:
        """Return all that was stored."""
        return self._output

    def _add(self, key: str, blob: NamedBlob, tag: str | None) -> None:
        place = self._places.setdefault(key, tag)
        if place != tag:
            raise BackendError(
                f"named data {key!r} is to be stored in {_file(place)} and in {_file(tag)}; "
                "a name has one place"
            )
        output = self._output
        blobs = output.pte_data if tag is None else output.external_data.setdefault(tag, {})
        there = blobs.setdefault(key, blob)
        if there is blob:
            return
        if bytes(there.data) != bytes(blob.data) or there.layout != blob.layout:
            raise BackendError(
                f"named data {key!r} is given twice with different content "
                f"({len(there.data)} and {len(blob.data)} bytes); name it by its content"
            )
        if there.alignment != blob.alignment:
            common = math.lcm(there.alignment, blob.alignment)
            blobs[key] = replace(there, alignment=common)


def _file(tag: str | None) -> str:
    return "the .pte" if tag is None else f"{tag}.ptd"


def _layout(tensor: torch.Tensor) -> TensorLayout:
    from etx_exir.ir.layout import SCALAR_TYPES, dim_order

    return TensorLayout(
        scalar_type=WireType(SCALAR_TYPES[tensor.dtype]),
        sizes=list(tensor.shape),
        dim_order=list(dim_order(tensor)),
    )


def _bytes(tensor: torch.Tensor) -> memoryview:
    from etx_exir.ir.pools import raw_bytes

    return raw_bytes(tensor)
