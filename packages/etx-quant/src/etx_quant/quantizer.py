# SPDX-License-Identifier: BSD-3-Clause
"""A quantizer whose patterns are rows: an operator and the role of each argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import (
    QuantizationAnnotation,
    QuantizationSpecBase,
    Quantizer,
    SharedQuantizationSpec,
)

from etx_quant.config import QuantizationConfig, get_symmetric_quantization_config

aten = torch.ops.aten
KEY = "quantization_annotation"


@dataclass(frozen=True)
class Weighted:
    """An operator with a weight: argument 0 is an activation, ``weight`` the weight's position."""

    weight: int = 1


@dataclass(frozen=True)
class Arithmetic:
    """An operator whose tensor arguments all are activations."""


@dataclass(frozen=True)
class Shared:
    """An operator that only moves or selects values: output and inputs share their parameters."""


ROWS: dict[object, Weighted | Arithmetic | Shared] = {
    aten.conv1d.default: Weighted(),
    aten.conv2d.default: Weighted(),
    aten.conv_transpose2d.input: Weighted(),
    aten.linear.default: Weighted(),
    aten.add.Tensor: Arithmetic(),
    aten.mul.Tensor: Arithmetic(),
    aten.adaptive_avg_pool2d.default: Arithmetic(),
    aten.avg_pool2d.default: Arithmetic(),
    aten.mean.dim: Arithmetic(),
    aten.cat.default: Shared(),
    aten.flatten.using_ints: Shared(),
    aten.max_pool2d.default: Shared(),
    aten.permute.default: Shared(),
    aten.reshape.default: Shared(),
    aten.transpose.int: Shared(),
    aten.view.default: Shared(),
}

ACTIVATIONS = frozenset(
    {aten.relu.default, aten.relu_.default, aten.hardtanh.default, aten.hardtanh_.default}
)
"""Clamps that a weighted or arithmetic operator takes in: only their output is quantized."""


class Int8Quantizer(Quantizer):  # type: ignore[misc]
    """Annotates the operators of ``ROWS`` for static int8 quantization.

    ``set_global`` sets the configuration of every operator, ``set_module_name`` that of a
    submodule (None leaves it in float).
    """

    def __init__(self) -> None:
        super().__init__()
        self._default: QuantizationConfig | None = get_symmetric_quantization_config()
        self._by_module: dict[str, QuantizationConfig | None] = {}

    def set_global(self, config: QuantizationConfig | None) -> Int8Quantizer:
        """Use ``config`` wherever nothing more special is set."""
        self._default = config
        return self

    def set_module_name(self, name: str, config: QuantizationConfig | None) -> Int8Quantizer:
        """Use ``config`` inside the submodule ``name``, e.g. ``encoder.layers.0``."""
        self._by_module[name] = config
        return self

    def annotate(self, model: GraphModule) -> GraphModule:
        """Attach annotations to the graph's nodes, in their order."""
        for node in model.graph.nodes:
            row = ROWS.get(node.target)
            config = self._config(node)
            if row is not None and config is not None and is_float(node):
                ANNOTATORS[type(row)](node, row, config)
        return model

    def validate(self, model: GraphModule) -> None:
        """Accept every annotated model."""

    def _config(self, node: Node) -> QuantizationConfig | None:
        """Return the configuration of the innermost named module around ``node``."""
        stack = node.meta.get("nn_module_stack") or {}
        for path, _ in reversed(list(stack.values())):
            name = path.removeprefix("L['self'].").replace("']", "").replace("['", "")
            if name in self._by_module:
                return self._by_module[name]
        return self._default


def is_float(node: Node) -> bool:
    """Tell whether ``node`` is a float32 tensor."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def output_of(node: Node) -> Node:
    """Return the clamp behind ``node`` if it is the only user, else ``node``."""
    users = list(node.users)
    if len(users) == 1 and users[0].target in ACTIVATIONS:
        return users[0]
    return node


def set_annotation(
    node: Node, inputs: dict[Node, QuantizationSpecBase | None], config: QuantizationConfig
) -> None:
    """Quantize ``inputs`` of ``node``, and its output behind a fused clamp."""
    last = output_of(node)
    if last is not node:
        node.meta[KEY] = QuantizationAnnotation(input_qspec_map=inputs, _annotated=True)
        inputs = {}
    last.meta[KEY] = QuantizationAnnotation(
        input_qspec_map=inputs, output_qspec=config.activation, _annotated=True
    )


def annotate_weighted(node: Node, row: Weighted, config: QuantizationConfig) -> None:
    """Annotate the input and the weight of a convolution or linear layer."""
    activation, weight = node.args[0], node.args[row.weight]
    assert isinstance(activation, Node)
    assert isinstance(weight, Node)
    set_annotation(node, {activation: config.activation, weight: config.weight}, config)


def annotate_arithmetic(node: Node, row: Arithmetic, config: QuantizationConfig) -> None:
    """Annotate all float inputs of an operator on activations."""
    inputs = {n: config.activation for n in node.all_input_nodes if is_float(n)}
    set_annotation(node, inputs, config)


def annotate_shared(node: Node, row: Shared, config: QuantizationConfig) -> None:
    """Give inputs and output of a moving operator one set of parameters."""
    inputs = [n for n in node.all_input_nodes if is_float(n)]
    if not all(KEY in n.meta for n in inputs):
        return
    shared = SharedQuantizationSpec((inputs[0], node))
    specs: dict[Node, QuantizationSpecBase] = dict.fromkeys(inputs, shared)
    specs[inputs[0]] = config.activation
    node.meta[KEY] = QuantizationAnnotation(
        input_qspec_map=specs, output_qspec=shared, _annotated=True
    )


ANNOTATORS: dict[type, Callable[[Node, object, QuantizationConfig], None]] = {
    Weighted: annotate_weighted,  # type: ignore[dict-item]
    Arithmetic: annotate_arithmetic,  # type: ignore[dict-item]
    Shared: annotate_shared,  # type: ignore[dict-item]
}
