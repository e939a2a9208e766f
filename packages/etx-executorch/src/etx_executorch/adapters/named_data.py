# SPDX-License-Identifier: BSD-3-Clause
"""Data that a backend stores by name, in the `.pte` or beside it."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import etx_exir
import torch
from etx_exir.ir import data_store
from etx_schema import EtxError

__all__ = [
    "DataEntry",
    "DataError",
    "FileBackedData",
    "NamedDataStore",
    "NamedDataStoreOutput",
    "PreprocessResult",
]

CHUNK = 1 << 20


class DataError(EtxError, ValueError):
    """Named data, or an alignment, that cannot be stored."""


@dataclass
class DataEntry:
    """Where a named blob is, and how it lies."""

    buffer_index: int
    alignment: int | None = None
    tensor_layout: Any = None


class FileBackedData:
    """Bytes that stay in a file of their own until they are written; the file goes at the end."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def move_from(cls, path: str | Path) -> FileBackedData:
        """Take a file over: it gets another name beside its own."""
        handle, name = tempfile.mkstemp(dir=Path(path).parent, prefix=".data")
        os.close(handle)
        os.replace(path, name)
        return cls(name)

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes, piece by piece."""
        with self.path.open("rb") as file:
            while piece := file.read(CHUNK):
                yield piece

    def write_to_file(self, outfile: BinaryIO) -> None:
        """Write the bytes."""
        with self.path.open("rb") as file:
            shutil.copyfileobj(file, outfile)

    def close(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> FileBackedData:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.path.stat().st_size

    def __bytes__(self) -> bytes:
        return self.path.read_bytes()


@dataclass
class NamedDataStoreOutput:
    """Blobs, and those in the file and beside it by name."""

    buffers: list[Any]
    pte_data: dict[str, DataEntry]
    external_data: dict[str, dict[str, DataEntry]]


class NamedDataStore:
    """Collects named data; a name that is given twice must hold the same bytes."""

    def __init__(self) -> None:
        self.buffers: list[Any] = []
        self.pte_data: dict[str, DataEntry] = {}
        self.external_data: dict[str, dict[str, DataEntry]] = {}
        self.key_to_buffer_idx: dict[str, int] = {}
        self._known: dict[tuple[int, bytes], int] = {}

    def add_named_data(
        self,
        key: str,
        data: Any,
        alignment: int | None = 1,
        external_tag: str | None = None,
        tensor_layout: Any = None,
    ) -> None:
        """Store `data` under `key`, with `external_tag` in a file of that name."""
        if isinstance(data, torch.Tensor):
            tensor_layout = _layout(key, data, tensor_layout)
            data = bytes(data_store._bytes(data))
        self._add(key, data, 1 if alignment is None else alignment, external_tag, tensor_layout)

    def _add(self, key: str, data: Any, alignment: int, tag: str | None, layout: Any) -> None:
        if alignment < 1:
            raise DataError(f"named data {key!r}: alignment {alignment}; expected 1 or more")
        digest = (len(data), _digest(data))
        index = self._known.get(digest, len(self.buffers))
        if self.key_to_buffer_idx.get(key, index) != index:
            raise DataError(f"named data {key!r} is given twice with different content")
        there = self.pte_data if tag is None else self.external_data.get(tag, {})
        if key in self.key_to_buffer_idx and key not in there:
            raise DataError(f"named data {key!r} is to be stored in two places; a name has one")
        if index == len(self.buffers):
            self.buffers.append(data)
            self._known[digest] = index
        self.key_to_buffer_idx[key] = index
        entries = self.pte_data if tag is None else self.external_data.setdefault(tag, {})
        entries.setdefault(key, DataEntry(index, alignment, layout))

    def merge_named_data_store(self, other: Any) -> None:
        """Add what another store holds."""
        for tag, entries in ((None, other.pte_data), *other.external_data.items()):
            for key, entry in entries.items():
                data = other.buffers[entry.buffer_index]
                self._add(key, data, entry.alignment or 1, tag, entry.tensor_layout)

    def externalize_pte_data(self, max_shard_size: int, tag_prefix: str) -> None:
        """Move what is to lie in the `.pte` into files of at most so many bytes each.

        Names are taken in order, blobs that several names share once. The tag of a file is the
        prefix and the SHA-256 of its first name.
        """
        if type(max_shard_size) is not int or max_shard_size < 1:
            raise DataError(f"the size {max_shard_size!r} of a file is not a positive integer")
        if not tag_prefix:
            raise DataError("the prefix must be nonempty")
        shards: list[dict[str, DataEntry]] = []
        taken: dict[int, int] = {}
        filled = max_shard_size
        for key, entry in sorted(self.pte_data.items()):
            size = len(self.buffers[entry.buffer_index])
            if size > max_shard_size:
                raise DataError(
                    f"named data {key!r}, {size:,} bytes, exceeds external data shard cap"
                    f" {max_shard_size:,}"
                )
            if entry.buffer_index not in taken:
                if not shards or filled + size > max_shard_size:
                    shards.append({})
                    filled = 0
                filled += size
                taken[entry.buffer_index] = len(shards) - 1
            shards[taken[entry.buffer_index]][key] = entry
        tagged = {_tag(tag_prefix, shard): shard for shard in shards}
        for tag in tagged:
            if tag in self.external_data:
                raise DataError(f"external data tag collision: {tag}")
        self.external_data.update(tagged)
        self.pte_data = {}

    def get_named_data_store_output(self) -> NamedDataStoreOutput:
        """Return what is stored."""
        return NamedDataStoreOutput(self.buffers, self.pte_data, self.external_data)


def _tag(prefix: str, shard: dict[str, DataEntry]) -> str:
    return f"{prefix}_{hashlib.sha256(min(shard).encode()).hexdigest()}"


def _digest(data: Any) -> bytes:
    digest = hashlib.sha256()
    for piece in data.chunks() if isinstance(data, FileBackedData) else (data,):
        digest.update(piece)
    return digest.digest()


def _layout(key: str, tensor: torch.Tensor, given: Any) -> Any:
    """Return the layout of a tensor, which must be dense and what was said of it."""
    channels_last = tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    if not tensor.is_contiguous() and not channels_last:
        raise DataError(
            f"named data {key!r}: strides {tensor.stride()} are not those of a dense layout"
        )
    found = data_store._layout(tensor)
    if given is not None and given != found:
        raise DataError(f"named data {key!r}: the tensor has {found}, not {given}")
    return found


@dataclass
class PreprocessResult(etx_exir.PreprocessResult):
    """The blob of a delegate, and what belongs to it; named data as this package's store has it."""

    def __post_init__(self) -> None:
        stored = self.data_store_output
        if isinstance(stored, NamedDataStoreOutput):
            store = data_store.NamedDataStore()
            for tag, entries in ((None, stored.pte_data), *stored.external_data.items()):
                for key, entry in entries.items():
                    data = bytes(stored.buffers[entry.buffer_index])
                    store.add_named_data(key, data, entry.alignment, tag, entry.tensor_layout)
            self.data_store_output = store.get_named_data_store_output()
