# SPDX-License-Identifier: BSD-3-Clause
"""Build, write and read TOSA 1.0 graphs (TOSA specification 1.0, main inference profile)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from etx_schema import decode
from etx_schema.codec import Table
from etx_schema.encoder import encode

from etx_backend_arm._generated import tosa as fbs
from etx_backend_arm._generated.tosa import (
    DType,
    NanPropagationMode,
    Op,
    ResizeMode,
    RoundingMode,
)
from etx_backend_arm.scales import multiplier_and_shift

__all__ = ["DType", "Graph", "NanPropagationMode", "Op", "ResizeMode", "fbs", "read_tosa"]

SIZES = {
    DType.INT4: 1,
    DType.INT8: 1,
    DType.INT16: 2,
    DType.FP16: 2,
    DType.BF16: 2,
    DType.INT32: 4,
    DType.FP32: 4,
    DType.INT48: 6,
}
"""Bytes of an element."""
Points = tuple[int, int]
"""The zero points of an input and an output."""


class Graph:
    """A TOSA graph with one region and one block, grown operator by operator.

    Values are named; shapes are in elements, data little-endian.
    """

    def __init__(self) -> None:
        self._block = fbs.TosaBasicBlock(name="main")
        self._tensors: dict[str, fbs.TosaTensor] = {}
        self._shapes: dict[tuple[int, ...], str] = {}
        self._constants: dict[tuple[tuple[int, ...], DType, bytes], str] = {}
        self._origins: dict[str, str] = {}
        self._reshaped: dict[tuple[str, tuple[int, ...]], str] = {}
        self.maker = ""
        """The node that is lowered now."""
        self.makers: dict[str, str] = {}
        """Of each value the node whose lowering has made it."""

    def input(self, name: str, shape: Sequence[int], dtype: DType) -> str:
        """Add an input of the graph."""
        self._block.inputs.append(self._tensor(name, shape, dtype))
        return name

    def output(self, name: str) -> None:
        """Declare an existing value to be an output of the graph."""
        self._block.outputs.append(name)

    def constant(self, name: str, shape: Sequence[int], dtype: DType, data: bytes) -> str:
        """Add a constant tensor, or return the name of one with the same data."""
        key = (tuple(shape), dtype, data)
        if key not in self._constants:
            self._tensor(name, shape, dtype, data)
            self._operator(Op.CONST, fbs.ConstAttribute(), [], [name])
            self._constants[key] = name
        return self._constants[key]

    def shape_constant(self, sizes: Sequence[int]) -> str:
        """Return the name of a constant shape."""
        key = tuple(sizes)
        if key not in self._shapes:
            name = "shape_" + "x".join(map(str, key))
            data = struct.pack(f"<{len(key)}q", *key)
            self._block.shapes.append(fbs.TosaShape(name=name, rank=len(key), data=data))
            self._operator(Op.CONST_SHAPE, fbs.ConstShapeAttribute(), [], [name])
            self._shapes[key] = name
        return self._shapes[key]

    def __contains__(self, name: str) -> bool:
        """Tell whether there is a value of this name."""
        return name in self._tensors

    def shape(self, name: str) -> list[int]:
        """Return the sizes of a value."""
        return list(self._tensors[name].shape)

    def dtype(self, name: str) -> DType:
        """Return the type of a value's elements."""
        return DType(self._tensors[name].type)

    def operator(
        self,
        op: Op,
        attribute: Table,
        inputs: Sequence[str],
        output: str,
        shape: Sequence[int],
        dtype: DType,
    ) -> str:
        """Add an operator with one output, and return the output's name."""
        self._tensor(output, shape, dtype)
        self._operator(op, attribute, inputs, [output])
        return output

    def transpose(
        self, value: str, perms: Sequence[int], output: str, shape: Sequence[int], dtype: DType
    ) -> str:
        """Add a TRANSPOSE: dimension i of the output is dimension ``perms[i]`` of ``value``."""
        if _keeps_order(self.shape(value), perms):
            return self.reshape(value, shape, output)
        attribute = fbs.TransposeAttribute(perms=list(perms))
        return self.operator(Op.TRANSPOSE, attribute, [value], output, shape, dtype)

    def multiply(self, first: str, second: str, output: str, shape: Sequence[int]) -> str:
        """Add a MUL without a shift, of the type of its operands."""
        operands = [first, second, self.constant("no_shift", [1], DType.INT8, b"\0")]
        dtype = self.dtype(first)
        return self.operator(Op.MUL, fbs.MulAttribute(), operands, output, shape, dtype)

    def reshape(self, value: str, shape: Sequence[int], output: str) -> str:
        """Return ``value`` in another shape: of several reshapes in a row only the last stays.

        A value has each shape once.
        """
        origin, key = self._origins.get(value, value), tuple(shape)
        if self.shape(origin) == list(shape):
            return origin
        data = self.data(origin)
        if data is not None:
            return self.constant(output, shape, self.dtype(origin), data)
        if (origin, key) not in self._reshaped:
            self._origins[output] = origin
            operands, dtype = [origin, self.shape_constant(shape)], self.dtype(origin)
            self._reshaped[origin, key] = self.operator(
                Op.RESHAPE, fbs.ReshapeAttribute(), operands, output, shape, dtype
            )
        return self._reshaped[origin, key]

    def rescale(
        self,
        value: str,
        scales: Sequence[float],
        points: Points,
        output: str,
        dtype: DType = DType.INT8,
    ) -> str:
        """Add a RESCALE, by one scale or one for each index of the last dimension.

        Of int48 the multipliers have 16 bits.
        """
        count, source = len(scales), self.dtype(value)
        bits, letter, kind = (31, "i", DType.INT32)
        if source == DType.INT48:
            bits, letter, kind = (15, "h", DType.INT16)
        pairs = [multiplier_and_shift(scale, bits) for scale in scales]
        multipliers = struct.pack(f"<{count}{letter}", *(m for m, _ in pairs))
        shifts = struct.pack(f"<{count}b", *(s for _, s in pairs))
        operands = [
            value,
            self.constant(f"{output}_multiplier", [count], kind, multipliers),
            self.constant(f"{output}_shift", [count], DType.INT8, shifts),
            self.zero_point(points[0], source),
            self.zero_point(points[1], dtype),
        ]
        attribute = fbs.RescaleAttribute(
            scale32=kind == DType.INT32,
            rounding_mode=RoundingMode.SINGLE_ROUND,
            per_channel=count > 1,
        )
        shape = self.shape(value)
        return self.operator(Op.RESCALE, attribute, operands, output, shape, dtype)

    def operators(self) -> Sequence[fbs.TosaOperator]:
        """Return the operators in their order."""
        return self._block.operators

    def needed(self) -> list[fbs.TosaOperator]:
        """Return the operators that an output needs, in their order."""
        needed, found = set(self._block.outputs), []
        for operator in reversed(self._block.operators):
            if needed.intersection(operator.outputs):
                needed.update(operator.inputs)
                found.append(operator)
        return found[::-1]

    def outputs(self) -> Sequence[str]:
        """Return the names of the graph's outputs."""
        return self._block.outputs

    def rename_output(self, name: str, other: str) -> None:
        """Let the graph return another value in the place of one."""
        self._block.outputs = [other if each == name else each for each in self._block.outputs]

    def data(self, name: str) -> bytes | None:
        """Return the bytes of a constant; None for another value."""
        data = self._tensors[name].data
        return bytes(data) if data else None

    def append(self, operator: fbs.TosaOperator) -> None:
        """Add an operator whose values exist."""
        self._block.operators.append(operator)

    def replace(self, operators: Sequence[fbs.TosaOperator]) -> None:
        """Take other operators in the place of all; their values exist."""
        self._block.operators = list(operators)

    def tensor(self, name: str, shape: Sequence[int], dtype: DType) -> str:
        """Add a value that an operator of ``replace`` will make."""
        return self._tensor(name, shape, dtype)

    def zero_point(self, point: int, dtype: DType) -> str:
        """Return the name of a zero point, a constant of one element; of floats it is 0."""
        size = SIZES[dtype]
        data = point.to_bytes(size, "little", signed=True)
        return self.constant(f"zero_point_{dtype.name.lower()}_{point}", [1], dtype, data)

    def clamp_integers(self, value: str, low: int, high: int, output: str) -> str:
        """Add a CLAMP of an int8 or int16 value."""
        letter = "<b" if self.dtype(value) == DType.INT8 else "<h"
        attribute = fbs.ClampAttribute(
            min_val=struct.pack(letter, low),
            max_val=struct.pack(letter, high),
            nan_mode=NanPropagationMode.PROPAGATE,
        )
        return self.operator(
            Op.CLAMP, attribute, [value], output, self.shape(value), self.dtype(value)
        )

    def clamp(self, value: str, low: float, high: float, output: str, shape: Sequence[int]) -> str:
        """Add a CLAMP of floats; NaN propagates."""
        dtype = self.dtype(value)
        attribute = fbs.ClampAttribute(
            min_val=_float_bytes(low, dtype),
            max_val=_float_bytes(high, dtype),
            nan_mode=NanPropagationMode.PROPAGATE,
        )
        return self.operator(Op.CLAMP, attribute, [value], output, shape, dtype)

    def serialize(self) -> bytes:
        """Return the TOSA file, version 1.0.0, without operators that no output needs."""
        self._prune()
        version = fbs.Version(major=1, minor=0, patch=0, draft=False)
        region = fbs.TosaRegion(name="main", blocks=[self._block])
        return encode(fbs.TosaGraph(version=version, regions=[region]), fbs.IDENTIFIER)

    def _prune(self) -> None:
        block = self._block
        block.operators = self.needed()
        kept = {name for each in block.operators for name in (*each.inputs, *each.outputs)}
        kept |= {*block.inputs, *block.outputs}
        block.tensors = [tensor for tensor in block.tensors if tensor.name in kept]
        block.shapes = [shape for shape in block.shapes if shape.name in kept]

    def _tensor(
        self, name: str, shape: Sequence[int], dtype: DType, data: bytes | None = None
    ) -> str:
        tensor = fbs.TosaTensor(name=name, shape=list(shape), type=dtype)
        if data is not None:
            tensor.data = data
        self._block.tensors.append(tensor)
        self._tensors[name] = tensor
        self.makers[name] = self.maker
        return name

    def _operator(
        self, op: Op, attribute: Any, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        self._block.operators.append(
            fbs.TosaOperator(op=op, attribute=attribute, inputs=list(inputs), outputs=list(outputs))
        )


def _float_bytes(number: float, dtype: DType) -> bytes:
    if dtype != DType.BF16:
        return struct.pack("<e" if dtype == DType.FP16 else "<f", number)
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    return struct.pack("<H", bits + 0x7FFF + (bits >> 16 & 1) >> 16)


def _keeps_order(shape: Sequence[int], perms: Sequence[int]) -> bool:
    """Tell whether a transposition moves no element: only dimensions of size 1 change places."""
    moved = [dim for dim in perms if shape[dim] != 1]
    return moved == sorted(moved)


def read_tosa(data: bytes) -> fbs.TosaGraph:
    """Read a TOSA file; raises ProgramError with the offset where it is not one."""
    return decode(fbs.TosaGraph, data, fbs.IDENTIFIER)
