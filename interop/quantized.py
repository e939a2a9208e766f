# SPDX-License-Identifier: BSD-3-Clause
"""Quantize models and lower them with ETX: ``program.pt2``, ``etx.pte`` for both runtimes and, with
integer operators, ``many/own.pte``; the calls of the quantized model and, in ``many/``, more of
them, and in ``many/float/`` those of the model.

usage: quantized.py FOLDER MODEL...; with --list the models are printed.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from etx_quant import (
    Int8Quantizer,
    XNNPACKQuantizer,
    get_embedding_quantization_config,
    get_symmetric_quantization_config,
    get_weight_quantization_config,
    quantize,
)
from modelset import build
from reference import record
from torchao.quantization import (
    Int8DynamicActivationIntxWeightConfig,
    IntxWeightOnlyConfig,
    PerAxis,
    PerGroup,
    quantize_,
)
from torchao.utils import unwrap_tensor_subclass

PER_CHANNEL = get_symmetric_quantization_config(is_per_channel=True)
ROWS = get_weight_quantization_config(is_dynamic=True)
TABLE = get_embedding_quantization_config()
EMBEDDING = torch.ops.aten.embedding
MANY = 32


def by(quantizer: Callable[[], Any]) -> Callable[[Any], torch.nn.Module]:
    """Return what quantizes a model of the set by the pt2e flow."""

    def quantized(built: Any) -> torch.nn.Module:
        calibration = [built.example, *built.calls]
        return quantize(built.module, calibration, quantizer(), dynamic_shapes=built.dynamic_shapes)

    return quantized


def by_torchao(built: Any) -> torch.nn.Module:
    """Quantize layers to int4 in groups, rows by their own range, and the vocabulary to int8."""
    module = copy.deepcopy(built.module)
    layers = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32)
    )
    tables = IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerAxis(0))
    quantize_(module, layers)
    quantize_(module, tables, lambda item, _: getattr(item, "num_embeddings", 0) > 1000)
    return unwrap_tensor_subclass(module)


MODELS: dict[str, tuple[str, Callable[[Any], torch.nn.Module]]] = {
    "mobilenet_v2_int8": ("mobilenet_v2", by(lambda: Int8Quantizer())),
    "mobilenet_v3_small_int8": (
        "mobilenet_v3_small",
        by(lambda: XNNPACKQuantizer().set_global(PER_CHANNEL)),
    ),
    "crepe_int8": ("crepe", by(lambda: Int8Quantizer())),
    "minilm_int8_rows": (
        "minilm",
        by(lambda: Int8Quantizer().set_global(ROWS).set_operator_type(EMBEDDING, TABLE)),
    ),
    "decoder_torchao": ("decoder", by_torchao),
}


def many(calls: list[tuple[torch.Tensor, ...]]) -> list[tuple[torch.Tensor, ...]]:
    """Return these calls and others, with the same numbers at other places."""
    generator = torch.Generator().manual_seed(0)

    def moved(x: torch.Tensor) -> torch.Tensor:
        return x.flatten()[torch.randperm(x.numel(), generator=generator)].view(x.shape)

    others = (calls[i % len(calls)] for i in range(MANY - len(calls)))
    return [*calls, *(tuple(map(moved, call)) for call in others)]


def main(root: Path, names: list[str]) -> None:
    """Prepare each model."""
    from etx_exir import ExecutorchBackendConfig, to_edge

    for name in names:
        folder = root / name
        folder.mkdir(exist_ok=True)
        source, quantizing = MODELS[name]
        built = build(source)
        shapes = built.dynamic_shapes
        quantized = quantizing(built)
        record(quantized, built.calls, folder)
        record(quantized, many(built.calls), folder / "many")
        record(built.module, many(built.calls), folder / "many" / "float")
        program = torch.export.export(quantized, built.example, dynamic_shapes=shapes)
        torch.export.save(program, folder / "program.pt2")
        edge, both = to_edge(program), ExecutorchBackendConfig(target="executorch")
        edge.to_executorch(both).save(folder / "etx.pte")
        edge.to_executorch().save(folder / "many" / "own.pte")
        print(f"{name}: quantized and lowered", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print(json.dumps(list(MODELS)))
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
