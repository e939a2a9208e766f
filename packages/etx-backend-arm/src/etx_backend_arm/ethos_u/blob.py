# SPDX-License-Identifier: BSD-3-Clause
"""The blob of ``EthosUBackend``: blocks of bytes with a name each (docs/ethos-u-blob.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from etx_schema import Blob, ProgramError

__all__ = ["EthosUBlob", "Port", "npu_of", "read_blob", "write_blob"]

HEADER = struct.Struct("<16sIB11x")
"""Name, length without padding, whether the data is a key into named data, 11 zero bytes."""
PORT = struct.Struct("<9i")
FIRST, LAST = b"vela_bin_stream", b"vela_end_stream"
ALIGNMENT = 16
FAMILIES = ("ethos-u55", "ethos-u65", "ethos-u85")
CONFIGURE, COMMANDS = 1, 2
"""Words for the driver: the NPU's configuration and identity follow, or its commands."""


@dataclass(frozen=True)
class Port:
    """Where an input or output lies: six sizes, bytes an element, offset in a region."""

    shape: tuple[int, ...]
    element_size: int
    offset: int
    region: int


@dataclass(frozen=True)
class EthosUBlob:
    """What Vela makes of a graph.

    ``commands`` begin with the driver's header ``COP1``; ``weights`` are region 0, or the key of
    named data that holds them; ``scratch_size`` is the size of region 1 in bytes.
    """

    commands: bytes
    weights: bytes | str
    scratch_size: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


def npu_of(commands: bytes) -> str | None:
    """Return the NPU that a blob's commands are for, as ``ethos-u55-128``; None without a word."""
    words = [word for (word,) in struct.iter_unpack("<I", commands[: len(commands) // 4 * 4])]
    at = 1
    while at + 1 < len(words) and words[at] & 255 != COMMANDS:
        if words[at] & 255 == CONFIGURE:
            family, macs = words[at + 1] >> 28, 1 << (words[at + 1] & 15)
            return f"{FAMILIES[family]}-{macs}" if family < len(FAMILIES) else None
        at += 1
    return None


def write_blob(blob: EthosUBlob) -> bytes:
    """Return the bytes of a blob."""
    key = blob.weights if isinstance(blob.weights, str) else None
    weights = key.encode() if key is not None else blob.weights
    assert isinstance(weights, bytes)
    return b"".join(
        [
            _block(FIRST, b""),
            _block(b"cmd_data", blob.commands),
            _block(b"weight_data", weights, external=key is not None),
            _block(b"scratch_size", struct.pack("<I", blob.scratch_size)),
            _block(b"inputs", _ports(blob.inputs)),
            _block(b"outputs", _ports(blob.outputs)),
            _block(LAST, b""),
        ]
    )


def _block(name: bytes, data: bytes, external: bool = False) -> bytes:
    padding = bytes(-len(data) % ALIGNMENT)
    return HEADER.pack(name, len(data), external) + data + padding


def _ports(ports: Sequence[Port]) -> bytes:
    rows = (PORT.pack(*p.shape, p.element_size, p.offset, p.region) for p in ports)
    return struct.pack("<i", len(ports)) + b"".join(rows)


def read_blob(data: Blob) -> EthosUBlob:
    """Read a blob; raises ProgramError with the offset where it is not one."""
    blocks = {}
    for offset, name, external, content in _blocks(memoryview(data).cast("B")):
        if name in blocks:
            raise ProgramError(f"Ethos-U blob: a second block {name!r} at offset {offset}")
        blocks[name] = (offset, external, content)
    missing = [n for n in ("cmd_data", "scratch_size", "inputs", "outputs") if n not in blocks]
    if missing:
        raise ProgramError(f"Ethos-U blob: it has no block {missing[0]!r}")
    at, _, scratch = blocks["scratch_size"]
    if len(scratch) != 4:
        raise ProgramError(f"Ethos-U blob: scratch_size at offset {at} has {len(scratch)} bytes")
    _, external, weights = blocks.get("weight_data", (0, False, b""))
    return EthosUBlob(
        blocks["cmd_data"][2],
        weights.decode("utf-8", "replace") if external else weights,
        int.from_bytes(scratch, "little"),
        _read_ports("inputs", *blocks["inputs"]),
        _read_ports("outputs", *blocks["outputs"]),
    )


def _blocks(view: memoryview) -> Iterator[tuple[int, str, bool, bytes]]:
    offset, is_first = 0, True
    while True:
        if offset + HEADER.size > len(view):
            raise ProgramError(f"Ethos-U blob: it ends at offset {len(view)} without {LAST!r}")
        padded, length, external = HEADER.unpack_from(view, offset)
        name, begin = padded.rstrip(b"\0"), offset + HEADER.size
        if is_first != (name == FIRST):
            raise ProgramError(f"Ethos-U blob: {name!r} at offset {offset}; expected {FIRST!r}")
        if begin + length > len(view):
            raise ProgramError(
                f"Ethos-U blob: block {name!r} at offset {offset} has {length} bytes, "
                f"{len(view) - begin} are left"
            )
        if name == LAST:
            return
        if not is_first:
            yield (
                offset,
                name.decode("ascii", "replace"),
                bool(external),
                bytes(view[begin : begin + length]),
            )
        is_first = False
        offset = begin + length + -length % ALIGNMENT


def _read_ports(name: str, offset: int, external: bool, data: bytes) -> tuple[Port, ...]:
    count = int.from_bytes(data[:4], "little") if len(data) >= 4 else -1
    if count < 0 or len(data) != 4 + count * PORT.size:
        raise ProgramError(f"Ethos-U blob: {name} at offset {offset} has {len(data)} bytes")
    rows = PORT.iter_unpack(data[4:])
    return tuple(Port(tuple(row[:6]), *row[6:]) for row in rows)
