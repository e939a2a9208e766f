# SPDX-License-Identifier: BSD-3-Clause
"""Weights larger than a core's cache are read in panels: the same bits in less time."""

from __future__ import annotations

import etx_runtime
import pytest
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from etx_quant import quantize
from torch import nn

DYNAMIC = "int8-dynamic"
LAYERS = {
    "linear": (lambda: nn.Linear(1024, 4100), (33, 1024)),
    "points": (lambda: nn.Conv2d(1024, 4100, 1), (1, 1024, 5, 7)),
    "windows": (lambda: nn.Conv2d(512, 916, 3), (1, 512, 7, 6)),
}
"""4 MB of weights in int8, 17 MB in float32."""


@pytest.mark.parametrize(
    ("layer", "recipe"),
    [*((layer, recipe) for layer in LAYERS for recipe in (None, "int8")), ("linear", DYNAMIC)],
)
def test_the_same_bits(layer, recipe):
    torch.manual_seed(0)
    make, shape = LAYERS[layer]
    model, x = make().eval(), torch.randn(shape)
    if recipe is not None:
        model = quantize(model, [(x,)], recipe=recipe)
    program = torch.export.export(model, (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    file = edge.to_executorch().buffer
    whole, panels = (
        etx_runtime.load(
            file, outputs="torch", backend_options={"XnnpackBackend": {"weight_panels": asked}}
        )
        for asked in (False, True)
    )
    before = etx_runtime.get_num_threads()
    try:
        for threads in (1, 2):
            etx_runtime.set_num_threads(threads)
            found = panels(x).clone()
            assert torch.equal(whole(x), found)
    finally:
        etx_runtime.set_num_threads(before)
    torch.testing.assert_close(found, model(x), atol=0.05, rtol=0)
