# SPDX-License-Identifier: BSD-3-Clause
"""Lower models to XNNPACK with ExecuTorch: in float, or quantized as its quantizers do.

usage: executorch_delegated.py FOLDER MODEL@KIND...    ``<MODEL@KIND>/xnnpack.pte``, ``calls.npz``

Kinds: float, static-int8, dynamic-int8, int4. What is compared is the module that was exported,
after its quantization; ``left.json`` is the number of delegates and of operators outside of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
    XnnpackDynamicallyQuantizedPartitioner,
    XnnpackPartitioner,
)
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.devtools.backend_debug import get_delegation_info
from executorch.exir import to_edge_transform_and_lower
from modelset import build
from reference import leaves
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
from torchao.quantization.granularity import PerGroup
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

Calls = list[tuple[Any, ...]]


def as_it_is(module: torch.nn.Module, calls: Calls) -> torch.nn.Module:
    return module


def through_pt2e(dynamic: bool) -> Callable[[torch.nn.Module, Calls], torch.nn.Module]:
    def quantize(module: torch.nn.Module, calls: Calls) -> torch.nn.Module:
        config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic)
        quantizer = XNNPACKQuantizer().set_global(config)
        prepared = prepare_pt2e(torch.export.export(module, calls[0]).module(), quantizer)
        for call in calls:
            prepared(*call)
        return convert_pt2e(prepared)

    return quantize


def int4_in_groups(module: torch.nn.Module, calls: Calls) -> torch.nn.Module:
    config = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32)
    )
    quantize_(module, config)
    return module


KINDS = {
    "float": as_it_is,
    "static-int8": through_pt2e(dynamic=False),
    "dynamic-int8": through_pt2e(dynamic=True),
    "int4": int4_in_groups,
}


def lower(name: str, folder: Path) -> None:
    model, kind = name.split("@")
    built = build(model)
    calls = [call for call in built.calls if same_sizes(call, built.example)]
    module = KINDS[kind](built.module.eval(), calls)
    arrays: dict[str, np.ndarray] = {}
    sizes = []
    for i, call in enumerate(calls):
        inputs, outputs = leaves(call), leaves(module(*call))
        arrays.update({f"call{i}_input{k}": x for k, x in enumerate(inputs)})
        arrays.update({f"call{i}_output{k}": x for k, x in enumerate(outputs)})
        sizes.append([len(inputs), len(outputs)])
    np.savez(folder / "calls.npz", **arrays)
    (folder / "calls.json").write_text(json.dumps(sizes))
    partitioner = [XnnpackPartitioner()]
    if kind == "dynamic-int8":
        partitioner = [XnnpackDynamicallyQuantizedPartitioner(), *partitioner]
    edge = to_edge_transform_and_lower(
        torch.export.export(module, built.example), partitioner=partitioner
    )
    info = get_delegation_info(edge.exported_program().graph_module)
    left = [info.num_delegated_subgraphs, info.num_non_delegated_nodes]
    (folder / "left.json").write_text(json.dumps(left))
    (folder / "xnnpack.pte").write_bytes(edge.to_executorch().buffer)


def same_sizes(call: tuple[Any, ...], example: tuple[Any, ...]) -> bool:
    return [each.shape for each in leaves(call)] == [each.shape for each in leaves(example)]


def main(folder: Path, names: list[str]) -> None:
    for name in names:
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        try:
            with torch.no_grad():
                lower(name, place)
        except Exception as error:
            (place / "xnnpack.error").write_text(f"{type(error).__name__}: {error}")
        print(f"{name}: lowered to XNNPACK by executorch", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
