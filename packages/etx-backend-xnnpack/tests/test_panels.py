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
    "linear": (lambda: nn.Linear(2048, 4100), (33, 2048)),
    "points": (lambda: nn.Conv2d(2048, 4100, 1), (1, 2048, 5, 7)),
    "windows": (lambda: nn.Conv2d(640, 1444, 3), (1, 640, 7, 6)),
}
"""8 MB of weights in int8, 33 MB in float32."""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("layer", "recipe"),
    [*((layer, recipe) for layer in LAYERS for recipe in (None, "int8")), ("linear", DYNAMIC)],
)
def test_the_same_bits(layer, recipe, threads):
    torch.manual_seed(0)
    make, shape = LAYERS[layer]
    model, x = make().eval(), torch.randn(shape)
    if recipe is not None:
        model = quantize(model, [(x,)], recipe=recipe)
    program = torch.export.export(model, (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    file = edge.to_executorch().buffer
    before = etx_runtime.get_num_threads()
    etx_runtime.set_num_threads(threads)
    try:
        whole, panels = (
            etx_runtime.load(
                file,
                outputs="torch",
                backend_options={"XnnpackBackend": {"weight_panels": asked}},
            )(x).clone()
            for asked in (False, True)
        )
    finally:
        etx_runtime.set_num_threads(before)
    assert torch.equal(whole, panels)
    torch.testing.assert_close(panels, model(x), atol=0.05, rtol=0)
