# SPDX-License-Identifier: BSD-3-Clause
"""Observers of torchao's flow that put operators of their own into the graph."""

from __future__ import annotations

import operator
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e import ObserverBase

from etx_quant.constants import tensor_of
from etx_quant.errors import QuantizationError
from etx_quant.operators import embedding, pack

__all__ = ["GroupObserver", "PerTokenObserver", "TableObserver", "WeightObserver"]

CLIPPED = tuple(1 - i / 50 for i in range(16))
"""Shares of a group's largest value that are tried as its range."""


SMALLEST = 2.0**-110
"""What the largest value of a group is taken for at least: scales are normal numbers."""

ORIGIN = ("nn_module_stack", "stack_trace")


class PerTokenObserver(ObserverBase):  # type: ignore[misc]
    """Stands where each row of the last dimension is quantized by its own range when it comes."""

    def __init__(self, dtype: torch.dtype = torch.int8, **options: Any) -> None:
        super().__init__(dtype=dtype, is_dynamic=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x``: there is nothing to observe."""
        return x

    def calculate_qparams(self, **_: Any) -> Any:
        """Raise: there are no parameters before a value comes."""
        raise QuantizationError("rows that are quantized when they come have no parameters before")

    def fake_quantize(self, x: Tensor) -> Tensor:
        """Quantize and dequantize."""
        quantized = torch.ops.quantized_decomposed
        scale, zero = quantized.choose_qparams_per_token_asymmetric(x, self.dtype)
        values = quantized.quantize_per_token(x, scale, zero, -128, 127, self.dtype)
        result: Tensor = quantized.dequantize_per_token(
            values, scale, zero, -128, 127, self.dtype, x.dtype
        )
        return result

    def convert(self, model: GraphModule, node: Node) -> None:
        """Put choose_qparams, quantize and dequantize in the place of the observer."""
        quantized, x = torch.ops.quantized_decomposed, node.args[0]
        call, bounds = model.graph.call_function, (-128, 127, self.dtype)
        with model.graph.inserting_before(node):
            chosen = call(quantized.choose_qparams_per_token_asymmetric.default, (x, self.dtype))
            parameters = tuple(call(operator.getitem, (chosen, i)) for i in (0, 1))
            values = call(quantized.quantize_per_token.default, (x, *parameters, *bounds))
            rows = call(
                quantized.dequantize_per_token.default,
                (values, *parameters, *bounds, torch.float32),
            )
        reader = next(iter(node.users))
        for made in (chosen, *parameters, values, rows):
            made.meta |= {k: reader.meta[k] for k in ORIGIN if k in reader.meta}
        node.replace_all_uses_with(rows)
        model.graph.erase_node(node)


class WeightObserver(ObserverBase):  # type: ignore[misc]
    """Holds the symmetric scales of a constant matrix, one a row or one a group of each row."""

    def __init__(
        self,
        dtype: torch.dtype = torch.int8,
        quant_min: int = -128,
        quant_max: int = 127,
        group_size: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(dtype=dtype)
        self.quant_min, self.quant_max, self.group_size = quant_min, quant_max, group_size
        self.scales: Tensor | None = None

    def forward(self, weight: Tensor) -> Tensor:
        """Choose the scales at the first call, and return ``weight``."""
        if self.scales is None:
            self.scales = choose_scales(
                weight.detach(), self.group_size, self.quant_min, self.quant_max
            )
        return weight

    def calculate_qparams(self, **_: Any) -> tuple[Tensor, Tensor]:
        """Return the scales, [rows, groups], and zeros."""
        if self.scales is None:
            raise QuantizationError("a weight was not observed: run the prepared model once")
        return self.scales, torch.zeros_like(self.scales, dtype=torch.int32)

    def quantize(self, weight: Tensor) -> Tensor:
        """Return the integers of ``weight``."""
        scales, _ = self.calculate_qparams()
        groups = weight.reshape(*scales.shape, -1) / scales[..., None]
        values: Tensor = groups.round().clamp(self.quant_min, self.quant_max).flatten(1)
        return values.to(self.dtype)

    def fake_quantize(self, weight: Tensor) -> Tensor:
        """Quantize and dequantize."""
        self(weight)
        scales, _ = self.calculate_qparams()
        groups = self.quantize(weight).reshape(*scales.shape, -1)
        result: Tensor = (groups * scales[..., None]).flatten(1)
        return result

    @abstractmethod
    def convert(self, model: GraphModule, node: Node) -> None:
        """Put operators in the place of the observer."""


class GroupObserver(WeightObserver):
    """The weight of a linear layer in groups: it becomes ``dequantize_per_channel_group``."""

    def convert(self, model: GraphModule, node: Node) -> None:
        """Store the integers and put their dequantization in the place of the observer."""
        weight, name = constant_of(model, node)
        self(weight)
        scales, zeros = self.calculate_qparams()
        quantized = torch.ops.quantized_decomposed
        bounds = (self.quant_min, self.quant_max, self.dtype)
        with model.graph.inserting_before(node):
            values = store(model, f"{name}_values", self.quantize(weight))
            scale = store(model, f"{name}_scale", scales)
            if scales.shape[1] == 1:
                scale = store(model, f"{name}_scale", scales.flatten())
                zero = store(model, f"{name}_zero_point", zeros.flatten().long())
                result = model.graph.call_function(
                    quantized.dequantize_per_channel.default, (values, scale, zero, 0, *bounds)
                )
            else:
                zero = store(model, f"{name}_zero_point", zeros)
                size = weight.shape[1] // scales.shape[1]
                result = model.graph.call_function(
                    quantized.dequantize_per_channel_group.default,
                    (values, scale, zero, *bounds, size, torch.float32),
                )
        node.replace_all_uses_with(result)
        drop(model, node)


class TableObserver(WeightObserver):
    """The rows of an embedding: it becomes an operator that dequantizes what is asked for."""

    def convert(self, model: GraphModule, node: Node) -> None:
        """Store the packed integers and replace each embedding that reads the observer."""
        weight, name = constant_of(model, node)
        self(weight)
        scales, _ = self.calculate_qparams()
        bits = (self.quant_max - self.quant_min + 1).bit_length() - 1
        for user in list(node.users):
            with model.graph.inserting_before(user):
                table = store(model, f"{name}_values", pack(self.quantize(weight), bits))
                rows = scales.flatten() if scales.shape[1] == 1 else scales
                scale = store(model, f"{name}_scale", rows)
                found = model.graph.call_function(
                    embedding(bits),
                    (table, scale, None, self.quant_min, self.quant_max, user.args[1]),
                )
            found.meta = {k: v for k, v in user.meta.items() if k != "quantization_annotation"}
            user.replace_all_uses_with(found)
            model.graph.erase_node(user)
        drop(model, node)


def choose_scales(weight: Tensor, group_size: int | None, low: int, high: int) -> Tensor:
    """Return [rows, groups] scales with the least squared error among some clipped ranges.

    They are bfloat16 numbers, which is what XNNPACK stores of a group.
    """
    size = weight.shape[1] if group_size is None else group_size
    groups = weight.reshape(weight.shape[0], -1, size).float()
    largest = groups.abs().amax(-1, keepdim=True).clamp(min=SMALLEST)
    best = torch.full_like(largest, torch.inf)
    scales = largest.clone()
    for share in CLIPPED if high < 127 else (1.0,):
        scale = (largest * (share / high)).to(torch.bfloat16).float()
        error = (groups / scale).round_().clamp_(low, high).mul_(scale).sub_(groups)
        error = error.square_().sum(-1, keepdim=True)
        scales = torch.where(error < best, scale, scales)
        best = torch.minimum(best, error)
    return scales.squeeze(-1)


def constant_of(model: GraphModule, node: Node) -> tuple[Tensor, str]:
    """Return the constant that an observer reads, and a name for what is made of it."""
    source = node.args[0]
    assert isinstance(source, Node)
    assert source.op == "get_attr", f"the weight {source} is not a constant"
    return tensor_of(model, source).detach(), str(source.target).replace(".", "_")


def store(model: GraphModule, name: str, value: Tensor) -> Node:
    """Make ``value`` a buffer of ``model`` under a free name, and return the node that reads it."""
    free = next(n for i in range(10**6) if not hasattr(model, n := f"{name}_{i}" if i else name))
    model.register_buffer(free, value)
    return model.graph.get_attr(free)


def drop(model: GraphModule, node: Node) -> None:
    """Erase an observer that nothing reads any more, and the constant that only it has read."""
    source = node.args[0]
    assert isinstance(source, Node)
    model.graph.erase_node(node)
    if source.users:
        return
    target = str(source.target)
    model.graph.erase_node(source)
    if not any(n.op == "get_attr" and n.target == target for n in model.graph.nodes):
        owner, _, attribute = target.rpartition(".")
        delattr(model.get_submodule(owner), attribute)
