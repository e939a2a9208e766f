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

    def reshape(self, value: str, shape: Sequence[int], output: str) -> str:
        """Return ``value`` in another shape: of several reshapes in a row only the last stays."""
        origin = self._origins.get(value, value)
        if self.shape(origin) == list(shape):
            return origin
        self._origins[output] = origin
        operands = [origin, self.shape_constant(shape)]
        dtype = self.dtype(origin)
        return self.operator(Op.RESHAPE, fbs.ReshapeAttribute(), operands, output, shape, dtype)

    def rescale(
        self,
        value: str,
        scales: Sequence[float],
        points: Points,
        output: str,
        dtype: DType = DType.INT8,
    ) -> str:
        """Add a RESCALE, by one scale or one for each index of the last dimension."""
        pairs = [multiplier_and_shift(scale) for scale in scales]
        count, source = len(pairs), self.dtype(value)
        multipliers = struct.pack(f"<{count}i", *(m for m, _ in pairs))
        shifts = struct.pack(f"<{count}b", *(s for _, s in pairs))
        operands = [
            value,
            self.constant(f"{output}_multiplier", [count], DType.INT32, multipliers),
            self.constant(f"{output}_shift", [count], DType.INT8, shifts),
            self.zero_point(points[0], source),
            self.zero_point(points[1], dtype),
        ]
        attribute = fbs.RescaleAttribute(
            scale32=True, rounding_mode=RoundingMode.SINGLE_ROUND, per_channel=count > 1
        )
        shape = self.shape(value)
        return self.operator(Op.RESCALE, attribute, operands, output, shape, dtype)

    def operators(self) -> Sequence[fbs.TosaOperator]:
        """Return the operators in their order."""
        return self._block.operators

    def replace(self, operators: Sequence[fbs.TosaOperator]) -> None:
        """Take other operators in the place of all; their values exist."""
        self._block.operators = list(operators)

    def tensor(self, name: str, shape: Sequence[int], dtype: DType) -> str:
        """Add a value that an operator of ``replace`` will make."""
        return self._tensor(name, shape, dtype)

    def zero_point(self, point: int, dtype: DType) -> str:
        """Return the name of a zero point, a constant of one element."""
        size = {DType.INT8: 1, DType.INT16: 2, DType.INT32: 4}[dtype]
        data = point.to_bytes(size, "little", signed=True)
        return self.constant(f"zero_point_{dtype.name.lower()}_{point}", [1], dtype, data)

    def clamp_integers(self, value: str, low: int, high: int, output: str) -> str:
        """Add a CLAMP of an int8 value."""
        attribute = fbs.ClampAttribute(
            min_val=struct.pack("<b", low),
            max_val=struct.pack("<b", high),
            nan_mode=NanPropagationMode.PROPAGATE,
        )
        return self.operator(
            Op.CLAMP, attribute, [value], output, self.shape(value), self.dtype(value)
        )

    def clamp(self, value: str, low: float, high: float, output: str, shape: Sequence[int]) -> str:
        """Add a CLAMP of a float32 value; NaN propagates."""
        attribute = fbs.ClampAttribute(
            min_val=struct.pack("<f", low),
            max_val=struct.pack("<f", high),
            nan_mode=NanPropagationMode.PROPAGATE,
        )
        return self.operator(Op.CLAMP, attribute, [value], output, shape, DType.FP32)

    def serialize(self) -> bytes:
        """Return the TOSA file, version 1.0.0, without operators that no output needs."""
        self._prune()
        version = fbs.Version(major=1, minor=0, patch=0, draft=False)
        region = fbs.TosaRegion(name="main", blocks=[self._block])
        return encode(fbs.TosaGraph(version=version, regions=[region]), fbs.IDENTIFIER)

    def _prune(self) -> None:
        block = self._block
        needed = set(block.outputs)
        for operator in reversed(block.operators):
            if needed.intersection(operator.outputs):
                needed.update(operator.inputs)
        block.operators = [o for o in block.operators if needed.intersection(o.outputs)]
        kept = needed | set(block.inputs)
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


def _keeps_order(shape: Sequence[int], perms: Sequence[int]) -> bool:
    """Tell whether a transposition moves no element: only dimensions of size 1 change places."""
    moved = [dim for dim in perms if shape[dim] != 1]
    return moved == sorted(moved)


def read_tosa(data: bytes) -> fbs.TosaGraph:
    """Read a TOSA file; raises ProgramError with the offset where it is not one."""
    return decode(fbs.TosaGraph, data, fbs.IDENTIFIER)
