# SPDX-License-Identifier: BSD-3-Clause
"""The values of a program while it is lowered: each in the layouts that operators asked for."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch
from etx_exir.ir.constants import Constants
from torch.export import ExportedProgram
from torch.fx import Node

from etx_backend_arm.quantized import (
    DEQUANTIZE,
    Affine,
    Step,
    Weight,
    clamp_of,
    find_step,
    weight_of,
    with_quantized,
)
from etx_backend_arm.tosa import DType, Graph

DTYPES = {
    torch.bool: DType.BOOL,
    torch.float32: DType.FP32,
    torch.float16: DType.FP16,
    torch.bfloat16: DType.BF16,
    torch.int8: DType.INT8,
    torch.int16: DType.INT16,
    torch.int32: DType.INT32,
}
PERMS = {"nhwc": (0, 2, 3, 1), "nchw": (0, 3, 1, 2)}


@dataclass(frozen=True)
class Total:
    """A sum of int32, multiples of ``unit``, before it is rounded; it is ``most`` or less."""

    name: str
    unit: float
    most: float
    layout: str


class Values:
    """Names of TOSA values by node and layout (``nchw`` is the program's own order).

    A transpose is added only where an operator needs the other layout, once a value.
    """

    def __init__(
        self,
        graph: Graph,
        program: ExportedProgram,
        narrow_tables: bool = False,
        narrow_weights: bool = False,
        wide_sums: bool = False,
    ) -> None:
        self.graph = graph
        self.narrow_weights = narrow_weights
        """Whether weights from -7 to 7 take 4 bits."""
        self.wide_sums = wide_sums
        """Whether a sum goes into a second one before it is rounded."""
        self.totals: dict[Node, Total] = {}
        self.narrow_tables = narrow_tables
        """Whether the target has tables of 8 bits only."""
        self._look = with_quantized(Constants(program).get)
        self._names: dict[tuple[Node, str], str] = {}
        self.done: set[Node] = set()
        """Nodes that another node's lowering has taken in."""
        self.results: dict[Node, object] = {}
        """Of operators with several results, what was made for the first that was picked."""

    def shape(self, node: Node, layout: str = "nchw") -> list[int]:
        """Return the sizes of a node's tensor in a layout."""
        sizes = [int(size) for size in node.meta["val"].shape]
        return [sizes[i] for i in PERMS["nhwc"]] if layout == "nhwc" else sizes

    def define(self, node: Node, name: str, layout: str = "nchw") -> None:
        """Record the value that holds ``node`` in ``layout``."""
        self._names[node, layout] = name

    def define_in(self, node: Node, name: str, layout: str) -> None:
        """Record a value in a layout; ``nlc`` are lines as images of one row, of rank 3 here.

        ``ndhwc`` are volumes, which are put in the program's order.
        """
        if layout == "nlc":
            batch, channels, length = self.shape(node)
            lines = self.graph.reshape(name, [batch, length, channels], f"{node.name}_nlc")
            dtype, shape = self.graph.dtype(name), [batch, channels, length]
            name = self.graph.transpose(lines, [0, 2, 1], f"{node.name}_ncl", shape, dtype)
            layout = "nchw"
        elif layout == "ndhwc":
            shape, dtype = self.shape(node), self.graph.dtype(name)
            name = self.graph.transpose(name, [0, 4, 1, 2, 3], f"{node.name}_ncdhw", shape, dtype)
            layout = "nchw"
        elif layout == "nchw":
            name = self.graph.reshape(name, self.shape(node), node.name)
        self.define(node, name, layout)

    def layout(self, node: Node) -> str:
        """Return a layout in which ``node`` exists already."""
        return "nchw" if (node, "nchw") in self._names else "nhwc"

    def get(self, node: Node, layout: str = "nchw") -> str:
        """Return the value of ``node`` in ``layout``, transposed if need be."""
        if node.target is DEQUANTIZE:
            assert isinstance(node.args[0], Node)
            node = node.args[0]
        tensor = self.parameter(node)
        if tensor is not None:
            order = PERMS["nhwc"] if layout == "nhwc" else tuple(range(tensor.dim()))
            return self.constant(f"{node.name}_{layout}", tensor.permute(order))
        if (node, layout) not in self._names:
            other = self._names[node, self.layout(node)]
            name = f"{node.name}_{layout}"
            dtype = DTYPES[node.meta["val"].dtype]
            shape = self.shape(node, layout)
            made = self.graph.transpose(other, PERMS[layout], name, shape, dtype)
            self._names[node, layout] = made
        return self._names[node, layout]

    def constant(self, name: str, tensor: torch.Tensor) -> str:
        """Add a constant with the tensor's values."""
        assert sys.byteorder == "little", "constants are written in the host's byte order"
        held = tensor.detach().contiguous()
        bits = held.view(torch.int16) if held.dtype == torch.bfloat16 else held
        data = bits.numpy().tobytes()
        return self.graph.constant(name, list(tensor.shape), DTYPES[tensor.dtype], data)

    def number(self, value: float, rank: int, dtype: DType) -> str:
        """Add a constant of one element."""
        (held,) = (kind for kind, made in DTYPES.items() if made == dtype)
        tensor = torch.tensor(value, dtype=None if held.is_floating_point else held)
        name = f"{dtype.name.lower()}_{value}_{rank}"
        return self.constant(name, tensor.double().to(held).reshape([1] * rank))

    def filters(self, name: str, integers: torch.Tensor, weight: Weight) -> tuple[str, str]:
        """Add the integers of a weight in an operator's order; return them and their zero point."""
        if not (self.narrow_weights and weight.is_narrow):
            return self.constant(name, integers), self.graph.zero_point(0, DType.INT8)
        numbers = integers.contiguous().flatten().to(torch.uint8) & 15
        pairs = torch.nn.functional.pad(numbers, (0, numbers.numel() % 2)).reshape(-1, 2)
        data = (pairs[:, 0] | pairs[:, 1] << 4).numpy().tobytes()
        zero = self.graph.zero_point(0, DType.INT4)
        return self.graph.constant(name, list(integers.shape), DType.INT4, data), zero

    def parameter(self, node: Any) -> torch.Tensor | None:
        """Return the constant tensor behind a placeholder, None if it is not a constant."""
        return self._look(node)

    def step(self, node: Node) -> Step:
        """Return the integer form of an operator that the partitioner has taken."""
        found = find_step(node, self.parameter)
        assert isinstance(found, Step), found
        self.done.update(n for n in (found.clamp, found.result) if n is not None)
        return found

    def weight(self, node: Any) -> Weight:
        """Return the int8 weight that a dequantizing node stands for."""
        found = weight_of(node, self.parameter)
        assert found is not None
        return found

    def bias(self, name: str, bias: torch.Tensor | None, form: Affine, weight: Weight) -> str:
        """Add a bias in the scale of the products; zeros for None.

        It has 32 bits, or 48 where activations have 16.
        """
        outputs = weight.integers.shape[0]
        reals = torch.zeros(outputs) if bias is None else bias
        scaled = (reals.detach().double() / (form.scale * weight.scales)).round()
        bits = 48 if form.is_wide else 32
        scaled = scaled.clamp(-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1)
        if not form.is_wide:
            return self.constant(name, scaled.to(torch.int32))
        data = b"".join(int(each).to_bytes(6, "little", signed=True) for each in scaled)
        return self.graph.constant(name, [outputs], DType.INT48, data)

    def requantize(
        self,
        step: Step,
        value: str,
        scales: list[float],
        layout: str = "nchw",
        points: int = 0,
    ) -> None:
        """Give ``value``, in these scales and a zero point, the scale and bounds of the result."""
        name, form, graph = step.result.name, step.form, self.graph
        dtype, given = DTYPES[form.dtype], (scales, points)
        if graph.dtype(value) != dtype or given != ([form.scale], form.zero_point):
            ratios, both = [scale / form.scale for scale in scales], (points, form.zero_point)
            value = graph.rescale(value, ratios, both, f"{name}_rescaled", dtype)
        low, high = step.bounds
        if form.limits(low, high):
            value = graph.clamp_integers(value, low, high, f"{name}_clamped")
        self.define_in(step.result, value, layout)

    def clamp_only(self, step: Step, node: Node) -> None:
        """Emit a step whose operator only limits the range."""
        low, high = clamp_of(node) or (None, None)
        form, given = step.form, step.forms[0]
        layout, graph = self.layout(step.sources[0]), self.graph
        value, name = self.get(step.sources[0], layout), node.name
        if (given.scale, given.zero_point) != (form.scale, form.zero_point):
            points = (given.zero_point, form.zero_point)
            ratios = [given.scale / form.scale]
            value = graph.rescale(value, ratios, points, f"{name}_rescaled", DTYPES[form.dtype])
        least = form.low if low is None else form.integer(low)
        most = form.high if high is None else form.integer(high)
        least, most = max(least, step.bounds[0]), min(most, step.bounds[1])
        if form.limits(least, most):
            value = graph.clamp_integers(value, least, most, f"{name}_clamped")
        self.define(step.result, value, layout)
