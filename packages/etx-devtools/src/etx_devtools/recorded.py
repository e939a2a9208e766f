# SPDX-License-Identifier: BSD-3-Clause
"""What a dump holds: what ran, from when to when, and the values seen."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from etx_schema import ProgramError
from etx_schema._generated.etdump import Tensor, Value, ValueType
from etx_schema.decoder import Decoder
from etx_schema.dtypes import DTYPES

if TYPE_CHECKING:
    from etx_schema import Blob

KERNEL = "native_call_"
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
    scratch: tuple[int, int] | None = None
    """The most bytes beside planned memory that an instruction asked for, and its index."""
    missing_events: int = 0
    missing_bytes: int = 0

    @property
    def is_execution(self) -> bool:
        """False for a load."""
        return self.name != "Default"


def to_python(value: Value, debug_buffer: Blob) -> Any:
    """Return a recorded value: an array, a list of arrays, a number, or None.

    Arrays are views of `debug_buffer`; types that NumPy lacks come as unsigned integers of their
    width. Errors: ProgramError where a tensor lies outside of the buffer.
    """
    from etx_devtools.arrays import array_of

    members = {
        ValueType.Int: (value.int_value, "int_val"),
        ValueType.Bool: (value.bool_value, "bool_val"),
        ValueType.Float: (value.float_value, "float_val"),
        ValueType.Double: (value.double_value, "double_val"),
    }
    if value.val == ValueType.Tensor and value.tensor is not None:
        return array_of(value.tensor, debug_buffer)
    if value.val == ValueType.TensorList and value.tensor_list is not None:
        return [array_of(tensor, debug_buffer) for tensor in value.tensor_list.tensors]
    table, member = members.get(value.val, (None, ""))
    return None if table is None else getattr(table, member)
