# SPDX-License-Identifier: BSD-3-Clause
"""Operators that are one CLAMP."""

from __future__ import annotations

import math

import torch
from torch.fx import Node

from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    floating,
    integers,
    lowers,
    static_shape,
)
from etx_backend_arm.quantized import Look, clamp_of
from etx_backend_arm.values import Values

aten = torch.ops.aten
LARGEST = math.inf
CHECKS = (floating, static_shape)


def clamp(values: Values, node: Node, low: float, high: float) -> None:
    """Clamp in whichever layout the input has."""
    source = node.all_input_nodes[0]
    layout = values.layout(source)
    shape = values.shape(node, layout)
    name = values.graph.clamp(values.get(source, layout), low, high, node.name, shape)
    values.define(node, name, layout)


@lowers(aten.relu.default, when=CHECKS)
def relu(values: Values, node: Node) -> None:
    """Lower to CLAMP(0, largest float)."""
    clamp(values, node, 0.0, LARGEST)


@lowers(aten.hardtanh.default, when=CHECKS)
def hardtanh(values: Values, node: Node) -> None:
    """Lower to CLAMP(min_val, max_val)."""
    _, low, high = arguments(node)
    clamp(values, node, low, high)


@lowers(aten.clamp.default, when=CHECKS)
def clamp_default(values: Values, node: Node) -> None:
    """Lower to CLAMP; an absent bound is the largest float."""
    _, low, high = arguments(node)
    clamp(values, node, -LARGEST if low is None else low, LARGEST if high is None else high)


def plain_bounds(node: Node, look: Look) -> str | None:
    """The bounds are numbers."""
    return None if clamp_of(node) else f"a bound of {node.name} is a tensor"


def clamp_int8(values: Values, node: Node) -> None:
    """Lower to RESCALE where the scales differ, and CLAMP where the bounds are inside of int8."""
    values.clamp_only(values.step(node), node)


for target in (aten.relu.default, aten.hardtanh.default, aten.clamp.default):
    checks = (integers, static_shape, plain_bounds)
    lowers(target, when=checks, profile=Profile.INT)(clamp_int8)
