# SPDX-License-Identifier: BSD-3-Clause
"""Layers on as many rows as the data chooses: the compiler knows no example of their number."""

from __future__ import annotations

import etx_runtime
import pytest
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import get_delegation_info, to_edge_transform_and_lower
from torch import nn
from torch.nn import functional as F

IMAGE, ROWS = (6, 3, 8, 8), (6, 5, 8)


def attended(x):
    return F.scaled_dot_product_attention(x, x, x)


LAYERS = {
    "convolution": (lambda: nn.Conv2d(3, 4, 3, padding=1), IMAGE),
    "transposed_convolution": (lambda: nn.ConvTranspose2d(3, 4, 2, 2), IMAGE),
    "max_pool": (lambda: nn.MaxPool2d(2), IMAGE),
    "average_pool": (lambda: nn.AvgPool2d(2), IMAGE),
    "upsampling": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), IMAGE),
    "linear": (lambda: nn.Linear(8, 7), ROWS),
    "attention": (lambda: attended, ROWS),
    "softmax": (lambda: nn.Softmax(-1), ROWS),
    "norm": (lambda: nn.LayerNorm(8), ROWS),
    "mean": (lambda: lambda x: x.mean(-1, keepdim=True), ROWS),
    "products": (lambda: lambda x: torch.bmm(x, x.transpose(1, 2)), ROWS),
    "concatenation": (lambda: lambda x: torch.cat([x, x.abs()], 1), ROWS),
    "elementwise": (lambda: lambda x: torch.sigmoid(x) * x + 1, ROWS),
}


class Chosen(nn.Module):
    """A layer on the rows that begin with a positive number."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer if isinstance(layer, nn.Module) else None
        self.function = layer

    def forward(self, x):
        kept = torch.nonzero(x.flatten(1)[:, 0] > 0).squeeze(1)
        return torch.relu(self.function(x[kept]))


@pytest.mark.parametrize("name", LAYERS)
def test_rows_that_the_data_chooses(name):
    torch.manual_seed(0)
    make, shape = LAYERS[name]
    module, x = Chosen(make()).eval(), torch.randn(shape)
    program = torch.export.export(module, (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner(heavy_only=False)])
    assert get_delegation_info(edge.exported_program().graph_module).num_delegated_nodes >= 1
    model = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")
    for given in (x, x.abs(), x):
        with torch.no_grad():
            expected = module(given)
        torch.testing.assert_close(model(given), expected, rtol=1e-4, atol=1e-5)
