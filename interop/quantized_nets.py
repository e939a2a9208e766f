# SPDX-License-Identifier: BSD-3-Clause
"""Random quantized nets: `quantized_nets.py COUNT SEED` draws nets of all kinds of steps and
results and a recipe for each, some with a batch that changes, and compares files for target etx,
for XNNPACK and for both runtimes with the quantized module, and that with the float net.
"""

from __future__ import annotations

import copy
import random
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import etx_runtime
import torch
from drawn_nets import SIDE, Net
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from etx_quant import (
    Int8Quantizer,
    QuantizationWarning,
    XNNPACKQuantizer,
    compare,
    get_symmetric_quantization_config,
    quantize,
)
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    PerAxis,
    PerGroup,
    quantize_,
)

CALLS, MOST, GROUP = 3, 8, 8
Options = dict[str, Any]
RECIPES: dict[str, tuple[int, Callable[[], Options]]] = {
    "int8": (3, dict),
    "int8-per-tensor": (
        1,
        lambda: {"quantizer": Int8Quantizer().set_global(get_symmetric_quantization_config())},
    ),
    "xnnpack": (
        2,
        lambda: {
            "quantizer": XNNPACKQuantizer().set_global(
                get_symmetric_quantization_config(is_per_channel=True)
            )
        },
    ),
    "int8-measured": (
        1,
        lambda: {
            "quantizer": XNNPACKQuantizer().set_global(
                get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
            )
        },
    ),
    "int8-dynamic": (1, lambda: {"recipe": "int8-dynamic"}),
    "int8-weight": (1, lambda: {"recipe": "int8-weight"}),
    "int4": (1, lambda: {"recipe": "int4", "group_size": GROUP}),
    "target of 35 dB": (1, lambda: {"target_sqnr": 35.0}),
}
"""How often each is drawn, and the options of `quantize`."""


TORCHAO: dict[str, Any] = {
    "torchao 8da8w": Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int8, weight_granularity=PerAxis(0)
    ),
    "torchao 8da4w": Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(GROUP)
    ),
    "torchao 8w": IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerAxis(0)),
    "torchao 4w": IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(GROUP)),
    "torchao int8": Int8WeightOnlyConfig(),
    "torchao int8 rows": Int8DynamicActivationInt8WeightConfig(),
}
"""Configurations of `torchao.quantize_`, for layers; those of weights only, for tables, too."""

LEAST = {"int4": 12.0, "torchao 8da4w": 12.0, "torchao 4w": 12.0}
"""In decibels, of the module to the float net: 20 unless said."""


def inputs(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an image and indices for each of a batch."""
    return torch.randn(batch, 3, SIDE, SIDE), torch.randint(0, 10, (batch, 4))


def by_torchao(net: torch.nn.Module, config: Any) -> torch.nn.Module:
    """Return a copy whose layers, and tables where it is of weights, `config` quantizes."""
    quantized = copy.deepcopy(net)
    group = getattr(getattr(config, "granularity", None), "group_size", 1)
    group = getattr(getattr(config, "weight_granularity", None), "group_size", group)
    kinds: tuple[type, ...] = (torch.nn.Linear,)
    if isinstance(config, IntxWeightOnlyConfig):
        kinds = (torch.nn.Linear, torch.nn.Embedding)

    def is_chosen(module: torch.nn.Module, _: str) -> bool:
        return type(module) in kinds and module.weight.shape[1] % group == 0

    quantize_(quantized, config, is_chosen)
    return quantized


def files(quantized: torch.nn.Module, call: tuple[Any, ...], options: Options) -> dict[str, bytes]:
    """Return the files of all targets."""
    program = torch.export.export(quantized, call, **options)
    edge, both = to_edge(program), ExecutorchBackendConfig(target="executorch")
    delegated = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    return {
        "etx": edge.to_executorch().buffer,
        "both": edge.to_executorch(both).buffer,
        "xnnpack": delegated.to_executorch().buffer,
    }


def attempt(seed: int) -> tuple[str, float, dict[str, float]]:
    """Return a name and decibels: of the module to float, and of each file to the module."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    net = Net(draw).eval()
    weights = [weight for weight, _ in RECIPES.values()]
    (recipe,) = draw.choices([*RECIPES, *TORCHAO], [*weights, *[1] * len(TORCHAO)])
    calls = [inputs(2) for _ in range(CALLS)]
    options: Options = {}
    name = f"{recipe}, {' > '.join(net.kinds)} > {net.result}"
    if draw.random() < 0.3:
        batch = torch.export.Dim("batch", min=1, max=MOST)
        options, name = {"dynamic_shapes": ({0: batch}, {0: batch})}, f"{name}, batches change"
    if recipe in TORCHAO:
        quantized = by_torchao(net, TORCHAO[recipe])
    else:
        quantized = quantize(net, calls, **RECIPES[recipe][1](), **options)
    lowered = files(quantized, calls[0], options)
    kept = compare(net, quantized, calls).sqnr
    if options:
        calls = [*calls, inputs(MOST - 1)]
    found = {
        target: compare(quantized, etx_runtime.load(file, outputs="torch"), calls).sqnr
        for target, file in lowered.items()
    }
    return name, kept, found


def findings(name: str, kept: float, found: dict[str, float]) -> list[str]:
    """Return what is wrong: a file may differ by less than what quantization costs."""
    recipe = name.split(",")[0]
    wrong = [] if kept > LEAST.get(recipe, 20.0) else [f"{kept:.1f} dB to float"]
    least = min(kept, 30.0) - 1
    return wrong + [
        f"{t}: {sqnr:.1f} dB to the module" for t, sqnr in found.items() if sqnr < least
    ]


def main(count: int, seed: int) -> int:
    lowest: dict[str, float] = {}
    failures = []
    for each in range(seed, seed + count):
        try:
            name, kept, found = attempt(each)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{last.filename}:{last.lineno}"
            failures.append(f"{each}: {type(error).__name__}: {str(error)[:300]} at {where}")
            continue
        for target, sqnr in found.items():
            lowest[target] = min(lowest.get(target, sqnr), sqnr)
        failures += [f"{each} ({name}), {text}" for text in findings(name, kept, found)]
    for target, sqnr in lowest.items():
        print(f"{target}: at least {sqnr:.1f} dB to the module")
    print(f"{count} nets from seed {seed}, {len(failures)} findings", *failures, sep="\n")
    return bool(failures)


if __name__ == "__main__":
    warnings.simplefilter("ignore", QuantizationWarning)
    torch.set_num_threads(1)
    sys.exit(main(*map(int, sys.argv[1:])))
