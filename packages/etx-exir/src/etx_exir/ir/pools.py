# SPDX-License-Identifier: BSD-3-Clause
"""Constant data, stored once however many tensors and methods use it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from etx_schema import NamedBlob, PtdFile, TensorLayout
from etx_schema import ScalarType as WireType

from etx_exir.errors import EmitError
from etx_exir.ir.layout import SCALAR_TYPES, dim_order

Blob = memoryview


def raw_bytes(tensor: torch.Tensor) -> Blob:
    """Return the bytes of `tensor` in its dim order, of its own storage where that is dense."""
    plain = tensor.detach().cpu()
    if plain.numel() == 0:
        return memoryview(b"")
    ordered = plain.permute(dim_order(plain)).contiguous()
    flat = ordered.reshape(-1)
    if flat.stride(0) != 1:  # of an expanded number: contiguous, and no bytes to look at
        flat = flat.clone(memory_format=torch.contiguous_format)
    array: Any = flat.view(torch.uint8).numpy()
    return memoryview(array)


def _sample(blob: Blob) -> tuple[int, int]:
    size = len(blob)
    if size <= 1 << 16:
        return size, zlib.crc32(blob)
    middle = size // 2
    crc = zlib.crc32(blob[: 1 << 14])
    crc = zlib.crc32(blob[middle : middle + (1 << 14)], crc)
    return size, zlib.crc32(blob[-(1 << 14) :], crc)


class BlobPool:
    """Blobs, numbered from 0; equal bytes get the same number."""

    def __init__(self) -> None:
        self.blobs: list[Blob] = []
        self._by_sample: dict[tuple[int, int], list[int]] = {}

    def add(self, data: bytes | bytearray | memoryview) -> int:
        """Return the number of the blob that holds these bytes."""
        blob = memoryview(data).cast("B")
        candidates = self._by_sample.setdefault(_sample(blob), [])
        view = np.frombuffer(blob, dtype=np.uint8)
        for index in candidates:
            if np.array_equal(view, np.frombuffer(self.blobs[index], dtype=np.uint8)):
                return index
        self.blobs.append(blob)
        candidates.append(len(self.blobs) - 1)
        return len(self.blobs) - 1


class Pool:
    """Tensor data, numbered from 1 as the file does; equal bytes get the same number."""

    def __init__(self) -> None:
        self._pool = BlobPool()
        self._by_storage: dict[tuple[int, ...], int] = {}
        self._keep: list[torch.Tensor] = []

    @property
    def blobs(self) -> list[Blob]:
        """Return the blobs in order of their numbers."""
        return self._pool.blobs

    def add(self, tensor: torch.Tensor) -> int:
        """Return the number of the blob that holds the bytes of `tensor`."""
        key = (tensor.data_ptr(), tensor.numel() * tensor.itemsize, *tensor.shape, -1)
        key += tuple(tensor.stride())
        if key in self._by_storage:
            return self._by_storage[key]
        index = self._pool.add(raw_bytes(tensor)) + 1
        if tensor.numel():
            self._by_storage[key] = index
            self._keep.append(tensor)
        return index


@dataclass
class Pools:
    """The data of a program: constants, initial state, delegates, and what goes to `.ptd`."""

    constants: Pool = field(default_factory=Pool)
    initial: Pool = field(default_factory=Pool)
    delegates: BlobPool = field(default_factory=BlobPool)
    external: dict[str, PtdFile] = field(default_factory=dict)

    def put_outside(self, tag: str, name: str, tensor: torch.Tensor) -> None:
        """Store `tensor` under `name` in the file of `tag`."""
        layout = TensorLayout(
            scalar_type=WireType(SCALAR_TYPES[tensor.dtype]),
            sizes=list(tensor.shape),
            dim_order=list(dim_order(tensor)),
        )
        blob = NamedBlob(raw_bytes(tensor), layout=layout)
        content = self.external.setdefault(tag, PtdFile()).named_data
        there = content.setdefault(name, blob)
        if there.layout != layout or not _equal(there.data, blob.data):
            raise EmitError(
                f"two tensors named {name!r} are to be stored in {tag}.ptd with different content"
            )

    def put_named(self, tag: str, blobs: Mapping[str, NamedBlob]) -> None:
        """Store what delegates named in the file of `tag`."""
        content = self.external.setdefault(tag, PtdFile()).named_data
        for name, blob in blobs.items():
            if name in content:
                raise EmitError(f"{tag}.ptd: {name!r} is both a tensor and a delegate's data")
            content[name] = blob


def _equal(one: Any, other: Any) -> bool:
    return np.array_equal(np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8))
