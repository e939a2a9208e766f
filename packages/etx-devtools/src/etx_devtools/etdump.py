# SPDX-License-Identifier: BSD-3-Clause
"""Read an ETDump of ETX or ExecuTorch: what ran, from when to when, and the values seen."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from etx_schema import Blob, ProgramError, decode_size_prefixed
from etx_schema._generated.etdump import (
    DebugEvent,
    ETDump,
    ProfileEvent,
    RunData,
    Tensor,
    Value,
    ValueType,
)
from etx_schema.dtypes import DTYPES
from etx_schema.files import load_bytes

OUTSIDE = 2**64 - 1
KERNEL = "native_call_"


@dataclass(frozen=True)
class Span:
    """A stretch of time, in ticks of the device's clock; `chain` -1 is outside of instructions."""

    name: str
    chain: int
    instruction: int
    start: int
    end: int
    delegate_id: str | int | None = None
    metadata: bytes = b""

    @property
    def ticks(self) -> int:
        """How long it took; 0 where a clock ran backwards."""
        return max(0, self.end - self.start)


@dataclass(frozen=True)
class Seen:
    """A value: of an instruction, of something within its delegate, or an output of the method."""

    chain: int
    instruction: int
    value: Value
    delegate_id: str | int | None = None

    @property
    def is_output(self) -> bool:
        """Whether the method returned it."""
        return self.value.output is not None and self.value.output.bool_val


@dataclass
class Run:
    """A load or an execution: its events in the order of their ends."""

    name: str
    method: str | None = None
    spans: list[Span] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
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
    dump: ETDump = decode_size_prefixed(ETDump, load_bytes(source), "ED00")
    if dump.version != 0:
        raise ProgramError(f"an ETDump of version {dump.version}, expected 0")
    return [_run(data) for data in dump.run_data]


def _run(data: RunData) -> Run:
    run = Run(data.name or "", bundled_input_index=data.bundled_input_index)
    for allocator in data.allocators:
        _read_note(run, allocator.name or "")
    for event in data.events:
        if event.profile_event is not None:
            run.spans.append(_span(event.profile_event))
        if event.debug_event is not None:
            run.seen.append(_seen(event.debug_event))
    return run


def _read_note(run: Run, text: str) -> None:
    """Take what ETX's runtime writes where ExecuTorch's names allocators."""
    if text.startswith("etx method="):
        run.method = text.removeprefix("etx method=")
    elif match := re.fullmatch(r"etx missing events=(\d+) bytes=(\d+)", text):
        run.missing_events, run.missing_bytes = map(int, match.groups())
    elif match := re.fullmatch(r"etx failed error=(\d+) instruction=(\d+)", text):
        run.failure = int(match[1]), int(match[2])


def _span(event: ProfileEvent) -> Span:
    delegate = _delegate_id(event)
    name = event.name or ("" if delegate is None else str(delegate))
    return Span(
        name,
        event.chain_index,
        event.instruction_id,
        event.start_time,
        event.end_time,
        delegate,
        event.delegate_debug_metadata or b"",
    )


def _seen(event: DebugEvent) -> Seen:
    chain = -1 if event.chain_index == OUTSIDE else event.chain_index
    value = event.debug_entry or Value()
    return Seen(chain, event.instruction_id, value, _delegate_id(event))


def _delegate_id(event: ProfileEvent | DebugEvent) -> str | int | None:
    if event.delegate_debug_id_str is not None:
        return event.delegate_debug_id_str
    return None if event.delegate_debug_id_int == -1 else event.delegate_debug_id_int


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
    bad = count < 0 or tensor.offset < 0 or any(size < 0 for size in sizes)
    if bad or tensor.offset + count * dtype.itemsize > len(view):
        raise ProgramError(
            f"a {name} tensor of sizes {sizes} at {tensor.offset} does not lie in the debug buffer "
            f"of {len(view)} bytes"
        )
    flat = np.frombuffer(view, dtype, count, tensor.offset)
    steps = [abs(step) for step in tensor.strides]
    if len(steps) != len(sizes) or count == 0:
        return flat.reshape(sizes)
    reach = 1 + sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    if reach != count:
        return flat.reshape(sizes)
    strides = [step * dtype.itemsize for step in steps]
    return np.lib.stride_tricks.as_strided(flat, sizes, strides, writeable=False)
