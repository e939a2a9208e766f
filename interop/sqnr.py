# SPDX-License-Identifier: BSD-3-Clause
"""Print what a recipe costs models with seeded weights: `sqnr.py RECIPE MODEL...`.

Models are those of the set, others of torchvision, or of timm as `timm:NAME`. Decibels are over
calls that have not calibrated: of the quantized module and of its file on ETX, each to float, and
of the file to the module; then how many instructions of the file have a float result.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import etx_runtime
import torch
from etx_exir import to_edge
from etx_quant import QuantizationWarning, compare, quantize
from modelset import BUILDERS, Built, vision
from torch.utils import _pytree as pytree

CALIBRATED, HELD = 4, 2


def built(name: str) -> Built:
    """Build a model by its name."""
    if name in BUILDERS:
        return BUILDERS[name]()
    of_timm = name.startswith("timm:")
    build = vision.timm_model if of_timm else vision.torchvision_model
    return build(name.removeprefix("timm:"))()


def data(model: Built) -> tuple[list[Any], list[Any]]:
    """Return calls that calibrate, and calls that are compared: of images more than the set has."""
    (first, *others) = model.example
    if others or not isinstance(first, torch.Tensor) or first.dim() != 4:
        return [model.example, *model.calls], model.calls
    torch.manual_seed(1)
    images = [(torch.randn_like(first),) for _ in range(CALIBRATED + HELD)]
    return images[:CALIBRATED], images[CALIBRATED:]


def on_device(buffer: bytes) -> Callable[..., Any]:
    """Return a function that runs a file on ETX and returns torch tensors."""
    loaded = etx_runtime.load(buffer)
    return lambda *args: pytree.tree_map(lambda x: torch.as_tensor(x).clone(), loaded(*args))


def main(recipe: str, names: list[str]) -> None:
    """Print a line a model."""
    for name in names:
        model = built(name)
        calibration, calls = data(model)
        shapes = model.dynamic_shapes
        module = quantize(model.module, calibration, recipe=recipe, dynamic_shapes=shapes)
        program = torch.export.export(module, model.example, dynamic_shapes=shapes)
        manager = to_edge(program).to_executorch()
        device = on_device(manager.buffer)
        nodes = manager.exported_program().graph_module.graph.nodes
        values = [n.meta.get("val") for n in nodes if n.op == "call_function"]
        floats = sum(isinstance(x, torch.Tensor) and x.is_floating_point() for x in values)
        found = (
            compare(model.module, module, calls).sqnr,
            compare(model.module, device, calls).sqnr,
            compare(module, device, calls).sqnr,
        )
        cells = " | ".join(f"{sqnr:.1f}" for sqnr in found)
        print(f"| {name} | {cells} | {floats} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", QuantizationWarning)
    main(sys.argv[1], sys.argv[2:])
