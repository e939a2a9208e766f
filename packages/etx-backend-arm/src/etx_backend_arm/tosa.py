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
from etx_backend_arm._generated.tosa import DType, NanPropagationMode, Op

__all__ = ["DType", "Graph", "NanPropagationMode", "Op", "fbs", "read_tosa"]


class Graph:
    """A TOSA graph with one region and one block, grown operator by operator.

    Values are named; shapes are in elements, data little-endian.
    """

    def __init__(self) -> None:
        self._block = fbs.TosaBasicBlock(name="main")

    def input(self, name: str, shape: Sequence[int], dtype: DType) -> str:
        """Add an input of the graph."""
        self._block.inputs.append(self._tensor(name, shape, dtype))
        return name

    def output(self, name: str) -> None:
        """Declare an existing value to be an output of the graph."""
        self._block.outputs.append(name)

    def constant(self, name: str, shape: Sequence[int], dtype: DType, data: bytes) -> str:
        """Add a constant tensor."""
        self._tensor(name, shape, dtype, data)
        self._operator(Op.CONST, fbs.ConstAttribute(), [], [name])
        return name

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
        attribute = fbs.TransposeAttribute(perms=list(perms))
        return self.operator(Op.TRANSPOSE, attribute, [value], output, shape, dtype)

    def clamp(self, value: str, low: float, high: float, output: str, shape: Sequence[int]) -> str:
        """Add a CLAMP of a float32 value; NaN propagates."""
        attribute = fbs.ClampAttribute(
            min_val=struct.pack("<f", low),
            max_val=struct.pack("<f", high),
            nan_mode=NanPropagationMode.PROPAGATE,
        )
        return self.operator(Op.CLAMP, attribute, [value], output, shape, DType.FP32)

    def serialize(self) -> bytes:
        """Return the TOSA file, version 1.0.0."""
        version = fbs.Version(major=1, minor=0, patch=0, draft=False)
        region = fbs.TosaRegion(name="main", blocks=[self._block])
        return encode(fbs.TosaGraph(version=version, regions=[region]), fbs.IDENTIFIER)

    def _tensor(
        self, name: str, shape: Sequence[int], dtype: DType, data: bytes | None = None
    ) -> str:
        tensor = fbs.TosaTensor(name=name, shape=list(shape), type=dtype)
        if data is not None:
            tensor.data = data
        self._block.tensors.append(tensor)
        return name

    def _operator(
        self, op: Op, attribute: Any, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        self._block.operators.append(
            fbs.TosaOperator(op=op, attribute=attribute, inputs=list(inputs), outputs=list(outputs))
        )


def read_tosa(data: bytes) -> fbs.TosaGraph:
    """Read a TOSA file; raises ProgramError with the offset where it is not one."""
    return decode(fbs.TosaGraph, data, fbs.IDENTIFIER)
