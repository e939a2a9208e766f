# SPDX-License-Identifier: BSD-3-Clause
"""Quantized models whose inputs do not lie in rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import etx_runtime
import pytest
import torch
from etx_exir import to_edge
from etx_quant import compare, quantize
from torch import Tensor, nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self, call: Callable[..., Tensor], *layers: nn.Module) -> None:
        super().__init__()
        self.call, self.layers = call, nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.call(x, *self.layers)


def image() -> Tensor:
    return torch.randn(2, 8, 4, 4).contiguous(memory_format=torch.channels_last)


NETS: dict[str, Callable[[], tuple[nn.Module, Tensor]]] = {
    "columns": lambda: (nn.Linear(16, 4), torch.randn(16, 6).t()),
    "time first": lambda: (nn.Linear(16, 4), torch.randn(5, 2, 16).transpose(0, 1)),
    "last of an image": lambda: (nn.Linear(4, 8), image()),
    "behind a function": lambda: (Net(lambda x, f: f(x.tanh()), nn.Linear(4, 8)), image()),
    "behind a pool": lambda: (Net(lambda x, f: f(F.avg_pool2d(x, 2)), nn.Linear(2, 8)), image()),
    "mean": lambda: (Net(lambda x, f: f(x.mean((2, 3))), nn.Linear(8, 8)), image()),
    "flattened": lambda: (Net(lambda x, f: f(x.flatten(1)), nn.Linear(128, 8)), image()),
    "resized": lambda: (
        Net(lambda x, f: f(F.interpolate(x, scale_factor=2.0)), nn.Linear(8, 8)),
        image(),
    ),
    "convolution": lambda: (
        Net(lambda x, c, f: f((c(x) * x).sigmoid()), nn.Conv2d(8, 8, 1), nn.Linear(4, 8)),
        image(),
    ),
    "recurrent": lambda: (
        Net(lambda x, r: r(x)[0], nn.GRU(8, 8, batch_first=True)),
        torch.randn(5, 2, 8).transpose(0, 1),
    ),
}
RECIPES: dict[str, dict[str, Any]] = {
    "int8": {},
    "int8-dynamic": {},
    "int8-weight": {},
    "int4": {"group_size": 2},
}


@pytest.mark.filterwarnings("ignore::etx_quant.QuantizationWarning")
@pytest.mark.filterwarnings("ignore:The tensor attributes .*were assigned during export")
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", NETS)
def test_inputs_of_any_order_are_computed_in_rows(name: str, recipe: str) -> None:
    torch.manual_seed(0)
    model, x = NETS[name]()
    assert not x.is_contiguous()
    quantized = quantize(model.eval(), [(x,)], recipe=recipe, **RECIPES[recipe])
    manager = to_edge(torch.export.export(quantized, (x,))).to_executorch()
    loaded = etx_runtime.load(manager.buffer)
    assert compare(quantized, lambda x: torch.as_tensor(loaded(x)), [(x,)]).sqnr > 40
