# SPDX-License-Identifier: BSD-3-Clause
"""Read an ETDump of ETX or ExecuTorch: what ran, from when to when, and the values seen."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from etx_schema import Blob, ProgramError
from etx_schema._generated.etdump import Tensor, Value, ValueType
from etx_schema.decoder import Decoder
from etx_schema.dtypes import DTYPES
from etx_schema.files import load_bytes

from etx_devtools.columns import Columns, Places

OUTSIDE = 2**64 - 1
KERNEL = "native_call_"
END_OF_THREAD = 9
"""The field that only debug events of threads have."""
NOWHERE = -1
NO_BYTES = b""


class Span(NamedTuple):
    """A stretch of time, in ticks of the device's clock; `chain` -1 is outside of instructions."""

    name: str
    chain: int
    instruction: int
    start: int
    end: int
    delegate_id: str | int | None = None
    metadata: bytes = NO_BYTES

    @property
    def ticks(self) -> int:
        """How long it took; 0 where a clock ran backwards."""
        return max(0, self.end - self.start)


class ThreadSpan(NamedTuple):
    """What a thread did of an instruction's loop: so many items, between two ticks."""

    chain: int
    instruction: int
    thread: int
    items: int
    start: int
    end: int

    @property
    def ticks(self) -> int:
        """How long it took; 0 where a clock ran backwards."""
        return max(0, self.end - self.start)


@dataclass(frozen=True)
class Statistics:
    """What a device that has no room for a tensor says of it.

    `min`, `max` and `mean` are of the finite elements, 0 without any. `hash` is that of the bytes:
    from 0, for each byte times 0x9E3779B97F4A7C15 plus the byte plus 1, modulo 2^64.
    """

    dtype: str
    shape: tuple[int, ...]
    min: float
    max: float
    mean: float
    nan: int
    infinite: int
    hash: int


class Seen(NamedTuple):
    """A value: of an instruction, of something within its delegate, or an output of the method."""

    chain: int
    instruction: int
    delegate_id: str | int | None
    data: memoryview
    place: int

    @property
    def value(self) -> Value:
        """The value as it is stored. Errors: ProgramError with the byte."""
        if self.place == 0:
            return Value()
        value: Value = Decoder(self.data, 4).table(Value, self.place)
        return value

    @property
    def is_output(self) -> bool:
        """Whether the method returned it."""
        output = self.value.output
        return output is not None and output.bool_val

    @property
    def statistics(self) -> Statistics | None:
        """What is known in place of a tensor. Errors: ProgramError with the byte."""
        value = self.value
        return _statistics(value.tensor) if value.val == ValueType.Null and value.tensor else None

    def read(self, debug_buffer: Blob | None) -> Any:
        """Return its statistics, or as `to_python`; None for a tensor without its buffer."""
        value = self.value
        if value.val == ValueType.Null and value.tensor is not None:
            return _statistics(value.tensor)
        if debug_buffer is None and (value.tensor is not None or value.tensor_list is not None):
            return None
        return to_python(value, NO_BYTES if debug_buffer is None else debug_buffer)


def _statistics(tensor: Tensor) -> Statistics:
    """Read what ETX's runtime writes in place of strides."""
    if tensor.offset != NOWHERE or len(tensor.strides) != 6 or tensor.scalar_type not in DTYPES:
        raise ProgramError(
            f"statistics are six numbers at -1, got {len(tensor.strides)} at {tensor.offset}"
        )
    least, most, mean = struct.unpack("<3d", struct.pack("<3q", *tensor.strides[:3]))
    nan, infinite, digest = tensor.strides[3:]
    dtype, shape = DTYPES[tensor.scalar_type][0], tuple(tensor.sizes)
    return Statistics(dtype, shape, least, most, mean, nan, infinite, digest % 2**64)


@dataclass
class Run:
    """A load or an execution: its events in the order of their ends."""

    name: str
    method: str | None = None
    spans: list[Span] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    threads: list[ThreadSpan] = field(default_factory=list)
    """Of loops that several threads ran; 0 is the thread that executed."""
    bundled_input_index: int = -1
    failure: tuple[int, int] | None = None
    """Error code and instruction, where the execution failed."""
    missing_events: int = 0
    missing_bytes: int = 0

    @property
    def is_execution(self) -> bool:
        """False for a load."""
        return self.name != "Default"


def read_etdump(source: str | os.PathLike[str] | Blob) -> list[Run]:
    """Read a file or its bytes. Errors: ProgramError with the byte."""
    columns = _columns(load_bytes(source))
    (version,), (list_place,) = columns.slots(_root(columns), 2)
    number = int(columns.numbers(np.array([version]), "u4", 0)[0])
    if number != 0:
        raise ProgramError(f"an ETDump of version {number}, expected 0", int(version))
    tables = columns.vector(int(columns.targets(np.array([list_place]))[0]))
    names, bundled, allocators, events = columns.slots(tables, 4)
    runs = [
        Run(name or "", bundled_input_index=index)
        for name, index in zip(
            columns.texts(columns.targets(names)),
            columns.numbers(bundled, "i4", -1).tolist(),
            strict=True,
        )
    ]
    _read_notes(columns, runs, columns.targets(allocators))
    _read_events(columns, runs, [columns.vector(p) for p in columns.targets(events).tolist()])
    return runs


def _columns(data: Blob) -> Columns:
    view = memoryview(data).cast("B")
    if len(view) < 12:
        raise ProgramError(f"an ETDump has 12 bytes or more, got {len(view)}", 0)
    size = int.from_bytes(view[:4], "little")
    if size > len(view) - 4:
        raise ProgramError(f"the length prefix says {size} bytes, {len(view) - 4} follow", 0)
    if bytes(view[8:12]) != b"ED00":
        raise ProgramError(f"expected identifier 'ED00', found {bytes(view[8:12])!r}", 8)
    if size < 8:
        raise ProgramError(f"the length prefix says {size} bytes, expected 8 or more", 0)
    return Columns(view[: size + 4])


def _root(columns: Columns) -> Places:
    return columns.targets(np.array([4], np.int64))


def _read_notes(columns: Columns, runs: Sequence[Run], places: Places) -> None:
    lists = [columns.vector(place) for place in places.tolist()]
    (names,) = columns.slots(_joined(lists), 1)
    texts = iter(columns.texts(columns.targets(names)))
    for run, allocators in zip(runs, lists, strict=True):
        for _ in range(len(allocators)):
            _read_note(run, next(texts) or "")


def _joined(lists: Sequence[Places]) -> Places:
    return np.concatenate([np.zeros(0, np.int64), *lists])


def _read_note(run: Run, text: str) -> None:
    """Take what ETX's runtime writes where ExecuTorch's names allocators."""
    if text.startswith("etx method="):
        run.method = text.removeprefix("etx method=")
    elif match := re.fullmatch(r"etx missing events=(\d+) bytes=(\d+)", text):
        run.missing_events, run.missing_bytes = map(int, match.groups())
    elif match := re.fullmatch(r"etx failed error=(\d+) instruction=(\d+)", text):
        run.failure = int(match[1]), int(match[2])


def _read_events(columns: Columns, runs: Sequence[Run], lists: Sequence[Places]) -> None:
    """Fill in the events of all runs; a text that many of them have is read once."""
    profiles, _, debugs = (columns.targets(places) for places in columns.slots(_joined(lists), 3))
    is_loop = np.zeros(len(debugs), bool)
    is_loop[debugs != 0] = columns.slots(debugs[debugs != 0], 10)[END_OF_THREAD] != 0
    loops, debugs = np.where(is_loop, debugs, 0), np.where(is_loop, 0, debugs)
    spans = iter(_spans(columns, profiles[profiles != 0]))
    seen = iter(_seen(columns, debugs[debugs != 0]))
    threads = iter(_threads(columns, loops[loops != 0]))
    begin = 0
    for run, events in zip(runs, lists, strict=True):
        end = begin + len(events)
        run.spans = [next(spans) for _ in range(np.count_nonzero(profiles[begin:end]))]
        run.seen = [next(seen) for _ in range(np.count_nonzero(debugs[begin:end]))]
        run.threads = [next(threads) for _ in range(np.count_nonzero(loops[begin:end]))]
        begin = end


def _spans(columns: Columns, tables: Places) -> list[Span]:
    slots = columns.slots(tables, 8)
    names, chains, instructions, numbers, texts, metadata, starts, ends = slots
    delegates = _delegates(columns, numbers, texts)
    labels = [
        name or ("" if delegate is None else str(delegate))
        for name, delegate in zip(columns.texts(columns.targets(names)), delegates, strict=True)
    ]
    return list(
        map(
            Span,
            labels,
            columns.numbers(chains, "i4", 0).tolist(),
            columns.numbers(instructions, "i4", -1).tolist(),
            columns.numbers(starts, "u8", 0).tolist(),
            columns.numbers(ends, "u8", 0).tolist(),
            delegates,
            columns.blobs(columns.targets(metadata)),
        )
    )


def _seen(columns: Columns, tables: Places) -> list[Seen]:
    chains, instructions, entries, numbers, texts = columns.slots(tables, 5)
    chain = columns.numbers(chains, "i8", 0)
    return list(
        map(
            Seen,
            chain.tolist(),
            columns.numbers(instructions, "i4", -1).tolist(),
            _delegates(columns, numbers, texts),
            [columns.view] * len(tables),
            columns.targets(entries).tolist(),
        )
    )


def _threads(columns: Columns, tables: Places) -> list[ThreadSpan]:
    kinds = ("i8", 0), ("i4", -1), ("u4", 0), ("u8", 0), ("u8", 0), ("u8", 0)
    slots = columns.slots(tables, 10)
    slots[2:] = slots[6:]
    members = [
        columns.numbers(places, kind, absent).tolist()
        for places, (kind, absent) in zip(slots, kinds, strict=True)
    ]
    return list(map(ThreadSpan, *members))


def _delegates(columns: Columns, numbers: Places, texts: Places) -> list[str | int | None]:
    """Return how delegates call what they tell of: a text, or a number that is not -1."""
    return [
        text if text is not None else None if number == -1 else number
        for text, number in zip(
            columns.texts(columns.targets(texts)),
            columns.numbers(numbers, "i4", -1).tolist(),
            strict=True,
        )
    ]


def to_python(value: Value, debug_buffer: Blob) -> Any:
    """Return a recorded value: an array, a list of arrays, a number, or None.

    Arrays are views of `debug_buffer`; types that NumPy lacks come as unsigned integers of their
    width. Errors: ProgramError where a tensor lies outside of the buffer.
    """
    members = {
        ValueType.Int: (value.int_value, "int_val"),
        ValueType.Bool: (value.bool_value, "bool_val"),
        ValueType.Float: (value.float_value, "float_val"),
        ValueType.Double: (value.double_value, "double_val"),
    }
    if value.val == ValueType.Tensor and value.tensor is not None:
        return _array(value.tensor, debug_buffer)
    if value.val == ValueType.TensorList and value.tensor_list is not None:
        return [_array(tensor, debug_buffer) for tensor in value.tensor_list.tensors]
    table, member = members.get(value.val, (None, ""))
    return None if table is None else getattr(table, member)


def _array(tensor: Tensor, debug_buffer: Blob) -> npt.NDArray[Any]:
    if tensor.scalar_type not in DTYPES:
        raise ProgramError(f"a recorded tensor has the unknown scalar type {tensor.scalar_type}")
    name, width = DTYPES[tensor.scalar_type]
    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = np.dtype(f"V{width}" if width not in (1, 2, 4) else f"u{width}")
    view = memoryview(debug_buffer).cast("B")
    sizes = list(tensor.sizes)
    count = 1
    for size in sizes:
        count *= size
    if count == 0:
        return np.empty([max(0, size) for size in sizes], dtype)
    bad = tensor.offset < 0 or any(size < 0 for size in sizes)
    if bad or tensor.offset + count * dtype.itemsize > len(view):
        raise ProgramError(
            f"a {name} tensor of sizes {sizes} at {tensor.offset} does not lie in the debug buffer "
            f"of {len(view)} bytes"
        )
    flat = np.frombuffer(view, dtype, count, tensor.offset)
    steps = [abs(step) for step in tensor.strides]
    if len(steps) != len(sizes):
        return flat.reshape(sizes)
    reach = 1 + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    if reach != count:
        return flat.reshape(sizes)
    strides = [step * dtype.itemsize for step in steps]
    return np.lib.stride_tricks.as_strided(flat, sizes, strides, writeable=False)
