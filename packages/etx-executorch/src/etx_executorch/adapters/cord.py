# SPDX-License-Identifier: BSD-3-Clause
"""Bytes in pieces, and the files beside a program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from etx_schema import Tensor as WireTensor
from etx_schema import TensorDataLocation, TensorLayout

from etx_executorch.adapters.named_data import DataEntry, FileBackedData
from etx_executorch.adapters.serialize import PTEFile, serialize_pte_binary

__all__ = ["Cord", "DataPayload", "DataSerializer", "serialize_for_executorch"]


class Cord:
    """Bytes that are joined when they are asked for."""

    def __init__(self, data: bytes | FileBackedData | Cord | None = None) -> None:
        self._buffers: list[bytes | FileBackedData] = []
        if data is not None:
            self.append(data)

    def append(self, data: bytes | FileBackedData | Cord) -> None:
        """Add pieces at the end without copying them."""
        self._buffers += data._buffers if isinstance(data, Cord) else [data]

    def write_to_file(self, outfile: BinaryIO) -> None:
        """Write the pieces one after the other."""
        for piece in self._buffers:
            if isinstance(piece, FileBackedData):
                piece.write_to_file(outfile)
            else:
                outfile.write(piece)

    def byte_size(self) -> int:
        """Return the number of bytes."""
        return len(self)

    def __len__(self) -> int:
        return sum(map(len, self._buffers))

    def __bytes__(self) -> bytes:
        return b"".join(map(bytes, self._buffers))


@dataclass
class DataPayload:
    """Blobs, and which of them each name means."""

    buffers: list[bytes] = field(default_factory=list)
    named_data: dict[str, DataEntry] = field(default_factory=dict)

    def add(self, key: str, data: bytes, alignment: int | None, layout: Any) -> None:
        """Store a blob under a name; equal ones once."""
        if data not in self.buffers:
            self.buffers.append(data)
        self.named_data[key] = DataEntry(self.buffers.index(data), alignment, layout)


class DataSerializer(ABC):
    """Writes and reads files of named data."""

    @abstractmethod
    def serialize(self, data: DataPayload) -> Cord:
        """Return the bytes of a file."""

    @abstractmethod
    def deserialize(self, blob: Cord) -> DataPayload:
        """Return what a file holds."""


def serialize_for_executorch(
    emitter_output: Any, config: Any, data_serializer: DataSerializer, named_data_store: Any = None
) -> tuple[Cord, dict[str, Cord]]:
    """Return the bytes of the program, and by tag those of the files beside it."""
    program = PTEFile(emitter_output.program, emitter_output.mutable_data, named_data_store)
    pte = serialize_pte_binary(
        program,
        extract_delegate_segments=config.extract_delegate_segments,
        segment_alignment=config.segment_alignment,
        constant_tensor_alignment=config.constant_tensor_alignment,
        delegate_alignment=config.delegate_alignment,
    )
    layouts = _layouts(emitter_output.program.execution_plan)
    payloads: dict[str, DataPayload] = {}
    for tag, places in (emitter_output.external_constant_map or {}).items():
        payload = payloads.setdefault(tag, DataPayload())
        for key, index in places.items():
            data = bytes(emitter_output.external_constant_buffer[index])
            payload.add(key, data, config.constant_tensor_alignment, layouts.get(key))
    stored = {} if named_data_store is None else named_data_store.external_data
    for tag, entries in stored.items():
        payload = payloads.setdefault(tag, DataPayload())
        for key, entry in entries.items():
            data = named_data_store.buffers[entry.buffer_index]
            payload.add(key, data, entry.alignment, entry.tensor_layout)
    return Cord(pte), {tag: data_serializer.serialize(each) for tag, each in payloads.items()}


def _layouts(plans: Iterable[Any]) -> dict[str, TensorLayout]:
    """Return the layouts of the tensors whose data lies outside, by name."""
    found: dict[str, TensorLayout] = {}
    for plan in plans:
        for value in plan.values:
            tensor = value.val
            extra = tensor.extra_tensor_info if isinstance(tensor, WireTensor) else None
            if extra is not None and extra.location == TensorDataLocation.EXTERNAL:
                found[extra.fully_qualified_name or ""] = TensorLayout(
                    tensor.scalar_type, tensor.sizes, tensor.dim_order
                )
    return found
