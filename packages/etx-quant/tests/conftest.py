# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import copy
import gc
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import torch
import torchao.quantization.pt2e.qat_utils
import torchao.quantization.pt2e.utils

sys.path.insert(0, str(Path(__file__).parent))

from digits import DigitsNet, digits, train
from etx_quant import quantize

torch.set_num_threads(1)  # models here are small: threads would wait for each other


@dataclass
class Trained:
    model: DigitsNet
    quantized: torch.fx.GraphModule
    images: torch.Tensor
    labels: torch.Tensor


def pytest_collection_finish() -> None:
    gc.freeze()  # torch's modules: the collector walks them again and again


@pytest.fixture(scope="session")
def trained() -> Trained:
    train_images, train_labels, images, labels = digits()
    model = train(train_images, train_labels)
    batch = torch.export.Dim("batch", min=1, max=512)
    calibration = [(b,) for b in train_images[:256].split(64)]
    quantized = quantize(model, calibration, dynamic_shapes=({0: batch},))
    return Trained(model, quantized, images, labels)


def meaning(value: Any) -> Any:
    """Return what tells apart the functions, tensors and constants of which graphs are made."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype, value.device
    if isinstance(value, FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        return value.__code__, *map(meaning, held)
    return type(value), value


@pytest.fixture(scope="session", autouse=True)
def exported_once() -> Iterator[None]:
    """Export torchao's patterns once: it would export a hundred for each model with a norm."""
    export = torchao.quantization.pt2e.utils._get_aten_graph_module_for_pattern
    kept: dict[Any, torch.fx.GraphModule] = {}

    def exported(pattern: Any, inputs: Any, *others: Any, **named: Any) -> torch.fx.GraphModule:
        key = (
            meaning(pattern.fn),
            tuple(map(meaning, (*inputs, *others))),
            tuple((name, meaning(value)) for name, value in named.items()),
        )
        if key not in kept:
            kept[key] = export(pattern, inputs, *others, **named)
        return copy.deepcopy(kept[key])

    with pytest.MonkeyPatch.context() as patch:
        for module in ("qat_utils", "utils"):
            place = f"torchao.quantization.pt2e.{module}._get_aten_graph_module_for_pattern"
            patch.setattr(place, exported)
        yield
