# SPDX-License-Identifier: BSD-3-Clause
"""The values of a program while it is lowered: each in the layouts that operators asked for."""

from __future__ import annotations

import sys
from typing import Any

import torch
from etx_exir.ir.constants import Constants
from torch.export import ExportedProgram
from torch.fx import Node

from etx_backend_arm.tosa import DType, Graph

DTYPES = {
    torch.float32: DType.FP32,
    torch.int8: DType.INT8,
    torch.int16: DType.INT16,
    torch.int32: DType.INT32,
}
PERMS = {"nhwc": (0, 2, 3, 1), "nchw": (0, 3, 1, 2)}


class Values:
    """Names of TOSA values by node and layout (``nchw`` is the program's own order).

    A transpose is added only where an operator needs the other layout, once a value.
    """

    def __init__(self, graph: Graph, program: ExportedProgram) -> None:
        self.graph = graph
        self._constants = Constants(program)
        self._names: dict[tuple[Node, str], str] = {}

    def shape(self, node: Node, layout: str = "nchw") -> list[int]:
        """Return the sizes of a node's tensor in a layout."""
        sizes = [int(size) for size in node.meta["val"].shape]
        return [sizes[i] for i in PERMS["nhwc"]] if layout == "nhwc" else sizes

    def define(self, node: Node, name: str, layout: str = "nchw") -> None:
        """Record the value that holds ``node`` in ``layout``."""
        self._names[node, layout] = name

    def layout(self, node: Node) -> str:
        """Return a layout in which ``node`` exists already."""
        return "nchw" if (node, "nchw") in self._names else "nhwc"

    def get(self, node: Node, layout: str = "nchw") -> str:
        """Return the value of ``node`` in ``layout``, transposed if need be."""
        if (node, layout) not in self._names:
            other = self._names[node, self.layout(node)]
            name = f"{node.name}_{layout}"
            dtype = DTYPES[node.meta["val"].dtype]
            self.graph.transpose(other, PERMS[layout], name, self.shape(node, layout), dtype)
            self._names[node, layout] = name
        return self._names[node, layout]

    def constant(self, name: str, tensor: torch.Tensor) -> str:
        """Add a constant with the tensor's values."""
        assert sys.byteorder == "little", "constants are written in the host's byte order"
        data = tensor.detach().contiguous().numpy().tobytes()
        return self.graph.constant(name, list(tensor.shape), DTYPES[tensor.dtype], data)

    def parameter(self, node: Any) -> torch.Tensor | None:
        """Return the constant tensor behind a placeholder, None if it is not a constant."""
        return self._constants.get(node)
