# SPDX-License-Identifier: BSD-3-Clause
"""A graph of the delegate while it grows: values, constants by the hash of their bytes, nodes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from etx_exir.ir.data_store import NamedDataStore, NamedDataStoreOutput

from etx_backend_xnnpack._generated.xnnpack import (
    Binary,
    ConstantPlace,
    DataType,
    Graph,
    Node,
    Operator,
    OutputRange,
    PerChannel,
    PerGroup,
    PerRow,
    PerTensor,
    QuantizedTensorValue,
    TensorValue,
    Unary,
    Value,
)
from etx_backend_xnnpack.blob import ALIGNMENT, XnnpackBlob, write_blob
from etx_backend_xnnpack.layout import Size, hint

NONE = 2**32 - 1
NAMED = 2**64 - 1
NO_HANDLE = 65535
READ = "read_"
EXTERNAL_INPUT, EXTERNAL_OUTPUT = 1, 2
FLOATS = {torch.float32: DataType.FP32, torch.float16: DataType.FP16}
TORCH = {dtype: torch_dtype for torch_dtype, dtype in FLOATS.items()}


@dataclass(frozen=True)
class Affine:
    """Parameters of an int8 tensor: ``(q - zero_point) * scale``."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class Range:
    """What results are clamped to."""

    low: float = -math.inf
    high: float = math.inf

    def overlaps(self, other: Range) -> bool:
        """Tell whether more than one number lies in both."""
        both = self.within(other)
        return both.low < both.high

    def within(self, other: Range) -> Range:
        """Return what lies in both."""
        return Range(max(self.low, other.low), min(self.high, other.high))


KEEP_NUMBERS = (Operator.Clamp, Operator.Copy, Operator.Reshape, Operator.Transpose)


class Builder:
    """Adds values and nodes in the order in which the delegate defines them.

    `dtype` is that of the real numbers in what is added next: FP32 or FP16. With a `tag` constants
    are stored in `<tag>.ptd`, under names of their own: others may hold the same bytes.
    """

    def __init__(self) -> None:
        self.dtype = DataType.FP32
        self.graph = Graph(version="0", constant_data=[ConstantPlace(named_key="")])
        self.handle = NO_HANDLE
        self.tag: str | None = None
        self._store = NamedDataStore()
        self._places: dict[str, int] = {}
        self._constants: dict[Any, int] = {}
        self._external: list[int] = []
        self._ranges: dict[int, Range] = {}

    def external_input(self, sizes: Sequence[Size], affine: Affine | None = None) -> int:
        """Add the next argument of the delegate's call; inputs come first."""
        number = self.value(sizes, affine)
        self._mark(number, EXTERNAL_INPUT)
        self.graph.input_ids.append(number)
        return number

    def external_output(self, number: int) -> None:
        """Make an internal value the next argument behind the inputs."""
        self._mark(number, EXTERNAL_OUTPUT)
        self.graph.output_ids.append(number)

    def sizes(self, number: int) -> list[int]:
        """Return the sizes of a value, of symbolic ones the example's."""
        return list(self._tensors(number).sizes)

    def is_internal(self, number: int) -> bool:
        """Tell whether a value is neither constant nor an argument of the call."""
        tensor = self._tensors(number)
        return not tensor.constant_index and not tensor.flags

    def value(self, sizes: Sequence[Size], affine: Affine | None = None) -> int:
        """Add a value that a node computes; return its id."""
        if affine is None:
            return self._add(self.dtype, sizes)
        return self._add(
            DataType.QINT8, sizes, PerTensor(scale=affine.scale, zero_point=affine.zero_point)
        )

    def rows(self, sizes: Sequence[Size], dims: int = 1) -> int:
        """Add a value that is quantized at run time, all of its last `dims` dimensions alike."""
        return self._add(DataType.QDINT8, sizes, PerRow(num_nonbatch_dims=dims))

    def constant(
        self,
        tensor: torch.Tensor,
        dtype: DataType | None = None,
        sizes: Sequence[int] | None = None,
        quantization: PerTensor | PerChannel | PerGroup | None = None,
        packed: bool = False,
    ) -> int:
        """Add a constant with the bytes of `tensor`; equal ones are one value.

        Without `dtype` it is the builder's, and the numbers are converted to it.
        What is `packed` into a kernel's own form has a name of its own: ExecuTorch's runtime
        gives those bytes back once they are packed, and other nodes must not read them.
        """
        if dtype is None:
            dtype, tensor = self.dtype, tensor.to(TORCH[self.dtype])
        data = _bytes(tensor)
        shape = list(tensor.shape if sizes is None else sizes)
        name = hashlib.sha256(data).hexdigest()
        index = self._place(name if packed else f"{READ}{name}", data)
        key = (index, dtype, tuple(shape), repr(quantization and vars(quantization)))
        if key not in self._constants:
            number = self._add(dtype, shape, quantization)
            self._tensors(number).constant_index = index
            self._constants[key] = number
        return self._constants[key]

    def scales(self, tensor: torch.Tensor) -> int:
        """Store scales of a quantized weight; return their place."""
        data = _bytes(tensor)
        return self._place("scale_" + hashlib.sha256(data).hexdigest(), data)

    def node(self, kind: Operator, operator: Any, clamp: Range | None = None) -> None:
        """Add a node of this kind."""
        output = None
        clamps = clamp or Range()
        if kind in KEEP_NUMBERS:
            clamps = clamps.within(self.range(operator.input_id))
        self._ranges[operator.output_id] = clamps
        if clamp is not None and clamp != Range():
            output = OutputRange(lowest=clamp.low, highest=clamp.high)
        self.graph.nodes.append(
            Node(
                operator_type=kind,
                operator=operator,
                debug_handle=self.handle,
                output_range=output,
            )
        )

    def range(self, number: int) -> Range:
        """Return what the nodes behind a value clamp it to."""
        return self._ranges.get(number, Range())

    def binary(
        self, kind: Operator, a: int, b: int, target: int, clamp: Range | None = None
    ) -> int:
        """Add a node of two values; return the value that it computes."""
        self.node(kind, Binary(input1_id=a, input2_id=b, output_id=target), clamp)
        return target

    def unary(self, kind: Operator, source: int, target: int, clamp: Range | None = None) -> int:
        """Add a node of one value without parameters; return the value that it computes."""
        self.node(kind, Unary(input_id=source, output_id=target), clamp)
        return target

    def number(self, value: float, affine: Affine | None = None) -> int:
        """Return a constant that holds one number, in int8 with parameters."""
        if affine is not None:
            step = min(max(round(value / affine.scale) + affine.zero_point, -128), 127)
            one = PerTensor(scale=affine.scale, zero_point=affine.zero_point)
            return self.constant(
                torch.tensor([step], dtype=torch.int8), DataType.QINT8, quantization=one
            )
        return self.constant(torch.tensor([value], dtype=torch.float64))

    def finish(self) -> tuple[bytes, NamedDataStoreOutput]:
        """Return the blob and the named data that belong to it."""
        self.graph.num_externals = len(self._external)
        return write_blob(XnnpackBlob(self.graph)), self._store.get_named_data_store_output()

    def _mark(self, number: int, flag: int) -> None:
        tensor = self._tensors(number)
        tensor.flags, tensor.external_id = flag, len(self._external)
        self._external.append(number)

    def _tensors(self, number: int) -> TensorValue:
        tensor: Any = self.graph.values[number].tensor
        found: Any = tensor.tensor if isinstance(tensor, QuantizedTensorValue) else tensor
        assert isinstance(found, TensorValue)
        return found

    def _add(self, dtype: DataType, sizes: Sequence[Size], quantization: Any = None) -> int:
        number = len(self.graph.values)
        tensor = TensorValue(
            dtype=dtype,
            rank=len(sizes),
            sizes=[hint(size) for size in sizes],
            external_id=NONE,
            id=number,
        )
        entry: Any = tensor
        if quantization is not None:
            entry = QuantizedTensorValue(tensor=tensor, quantization=quantization)
        self.graph.values.append(Value(tensor=entry))
        return number

    def _place(self, key: str, data: bytes) -> int:
        if self.tag is not None:
            key = f"{key}@{self.tag}"
        if key not in self._places:
            self._store.add_named_data(key, data, ALIGNMENT, self.tag)
            self._places[key] = len(self.graph.constant_data)
            place = ConstantPlace(offset=NAMED, size=len(data), named_key=key)
            self.graph.constant_data.append(place)
        return self._places[key]


def _bytes(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else b""
