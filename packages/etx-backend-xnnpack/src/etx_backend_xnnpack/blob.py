# SPDX-License-Identifier: BSD-3-Clause
"""The delegate's blob: a header, a graph as a flatbuffer, and constant data."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from etx_schema import Blob, EtxError, ProgramError, decode, encode

from etx_backend_xnnpack._generated.xnnpack import Graph

MAGIC = b"XH00"
HEADER = struct.Struct("<4s4sHIIIQ2s")
IDENTIFIERS = ("XN00", "XN01")
ALIGNMENT = 16


@dataclass
class XnnpackBlob:
    """A delegate's graph with the constants that are stored beside it.

    Old blobs have no header: they are only the flatbuffer, constants inside.
    """

    graph: Graph
    constant_data: Blob = b""
    identifier: str = "XN01"
    header: bool = True


def read_blob(data: Blob) -> XnnpackBlob:
    """Read a blob from untrusted bytes; raise ProgramError with the offset in it."""
    view = memoryview(data).cast("B")
    if view[4:8] != MAGIC:
        graph, identifier = _graph(view, 0)
        return XnnpackBlob(graph, identifier=identifier, header=False)
    if len(view) < HEADER.size:
        raise ProgramError(f"the header needs {HEADER.size} bytes, there are {len(view)}", 0)
    _, _, length, start, size, constants, constant_size, _ = HEADER.unpack_from(view)
    if length < HEADER.size - 2 or start < HEADER.size - 2 or start % 4:
        raise ProgramError(f"the header of {length} bytes puts the graph at {start}", 8)
    if start + size > len(view):
        raise ProgramError(
            f"the header says that the graph takes {size} bytes at {start}, the blob has "
            f"{len(view)}; it is truncated or damaged",
            10,
        )
    if constant_size and (constants < start + size or constants + constant_size > len(view)):
        raise ProgramError(
            f"the header says that constants take {constant_size} bytes at {constants}, the "
            f"blob has {len(view)}; it is truncated or damaged",
            18,
        )
    graph, identifier = _graph(view[: start + size], start)
    return XnnpackBlob(graph, bytes(view[constants : constants + constant_size]), identifier)


def _graph(view: memoryview, start: int) -> tuple[Graph, str]:
    found = bytes(view[start + 4 : start + 8])
    for identifier in IDENTIFIERS:
        if found == identifier.encode():
            return decode(Graph, view, identifier, start=start), identifier
    raise ProgramError(f"expected identifier 'XN01' or 'XN00', found {found!r}", start + 4)


def write_blob(blob: XnnpackBlob) -> bytes:
    """Return the bytes; a blob that was read comes back as it was, byte for byte."""
    if blob.identifier not in IDENTIFIERS:
        raise EtxError(f"expected identifier 'XN01' or 'XN00', got {blob.identifier!r}")
    graph = encode(blob.graph, blob.identifier)
    if not blob.header:
        if len(blob.constant_data):
            raise EtxError("a blob without a header has no room for constant data")
        return graph
    end = HEADER.size + len(graph)
    constants = -(-end // ALIGNMENT) * ALIGNMENT
    size = memoryview(blob.constant_data).nbytes
    header = HEADER.pack(
        bytes(4), MAGIC, HEADER.size - 2, HEADER.size, len(graph), constants, size, bytes(2)
    )
    return b"".join([header, graph, bytes(constants - end), blob.constant_data])
