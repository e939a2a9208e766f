# SPDX-License-Identifier: BSD-3-Clause
"""Small models in the styles that are used, by drawn recipes: their files compute what they do."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import (
    Int8Quantizer,
    compare,
    finish_training,
    get_symmetric_quantization_config,
    prepare_training,
    quantize,
)
from styles import STYLES
from torch import nn
from torch.utils import _pytree as pytree

pytestmark = pytest.mark.filterwarnings(
    "ignore:The tensor attribute:UserWarning",
    "ignore:The PyTorch API of nested tensors:UserWarning",
    "ignore::etx_quant.QuantizationWarning",
)
SEED, DRAWN, CALLS = 7, 3, 3
Quantize = Callable[[nn.Module, list[Any]], Any]


def trained(model: nn.Module, calls: list[Any]) -> Any:
    training = prepare_training(model, calls[0])
    for call in calls:
        results = pytree.tree_leaves(training(*call))
        sum(r.sum() for r in results if r.is_floating_point()).backward()  # type: ignore[union-attr]
    return finish_training(training)


def of_tensor(model: nn.Module, calls: list[Any]) -> Any:
    configuration = get_symmetric_quantization_config()
    return quantize(model, calls, Int8Quantizer().set_global(configuration))


RECIPES: dict[str, Quantize] = {
    "int8": quantize,
    "int8 of tensors": of_tensor,
    "int8-dynamic": lambda m, calls: quantize(m, calls, recipe="int8-dynamic"),
    "int8-weight": lambda m, calls: quantize(m, calls, recipe="int8-weight"),
    "int4": lambda m, calls: quantize(m, calls, recipe="int4", group_size=8),
    "target": lambda m, calls: quantize(m, calls, target_sqnr=35.0),
    "training": trained,
}
MATRICES = ("int8-dynamic", "int8-weight", "int4")


def recipes(style: str) -> list[str]:
    """Return the recipes of a style: int8, training where something drops out, and drawn ones."""
    fixed = ["int8", "training"] if style in ("words", "several") else ["int8"]
    others = [name for name in RECIPES if name not in fixed]
    if style == "resized":
        others = [name for name in others if name not in MATRICES]
    return [*fixed, *random.Random(f"{SEED} {style}").sample(others, DRAWN - len(fixed))]


PAIRS = [(style, recipe) for style in STYLES for recipe in recipes(style)]


@pytest.mark.parametrize(("style", "recipe"), PAIRS)
def test_a_file_computes_what_the_quantized_model_does(style: str, recipe: str) -> None:
    torch.manual_seed(0)
    make, draw = STYLES[style]
    model, calls = make(), [draw() for _ in range(CALLS)]
    with torch.no_grad():
        model.train()(*calls[0])
    quantized = RECIPES[recipe](model.eval(), calls)
    found = compare(model.eval(), quantized, calls).sqnr
    assert found > (10 if recipe == "training" else 20)
    edge = to_edge(torch.export.export(quantized, calls[0]))
    for target in ("etx", "executorch"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file = edge.to_executorch(ExecutorchBackendConfig(target=target)).buffer
        loaded = etx_runtime.load(file, outputs="torch")
        # Steps to the other side add up over layers: never to more than the rounding itself.
        assert compare(quantized, loaded, calls).sqnr > min(found, 38)
