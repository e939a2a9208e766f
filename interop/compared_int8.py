# SPDX-License-Identifier: BSD-3-Clause
"""Compare int8 models with their quantized reference and their float model, layer by layer.

usage: compared_int8.py [--layers] [MODEL...]; prints a table, with --layers one of each program.
"""

from __future__ import annotations

import statistics
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from math import isfinite
from typing import Any

import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_devtools.compare import compare
from etx_devtools.compare.inside import compile_tapped
from etx_exir import to_edge, to_edge_transform_and_lower
from etx_quant import (
    Int8Quantizer,
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
    get_weight_quantization_config,
    quantize,
)
from modelset import build

STATIC = get_symmetric_quantization_config(is_per_channel=True)
TENSOR = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
ROWS = get_weight_quantization_config(is_dynamic=True)

Row = tuple[str, str, bool, Callable[[], Any]]
MODELS: dict[str, Row] = {
    "mobilenet_v2 static": ("mobilenet_v2", "static", False, Int8Quantizer),
    "mobilenet_v2 static xnnpack": (
        "mobilenet_v2",
        "static",
        True,
        lambda: XNNPACKQuantizer().set_global(STATIC),
    ),
    "crepe static": ("crepe", "static", False, Int8Quantizer),
    "minilm dynamic": (
        "minilm",
        "dynamic, by row",
        False,
        lambda: Int8Quantizer().set_global(ROWS),
    ),
    "minilm dynamic xnnpack": (
        "minilm",
        "dynamic, by tensor",
        True,
        lambda: XNNPACKQuantizer().set_global(TENSOR),
    ),
}
HEADINGS = (
    "model",
    "int8",
    "where",
    "results",
    "none",
    "wrong",
    "layers",
    "by design",
    "device",
    "runtime",
    "lowest runtime",
)


def row(name: str, shows_layers: bool) -> tuple[list[str], list[str]]:
    """Return a line of the table, and what a program's report says where that is asked for."""
    source, kind, is_delegated, quantizer = MODELS[name]
    built = build(source)
    shapes = built.dynamic_shapes
    quantized = quantize(
        built.module, [built.example, *built.calls], quantizer(), dynamic_shapes=shapes
    )
    with torch.no_grad():
        program, floating = (
            torch.export.export(module, built.example, dynamic_shapes=shapes)
            for module in (quantized, built.module)
        )
    both = (program, built.calls[:1])
    if is_delegated:
        edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        border = compare(edge.to_executorch().pte_file, *both)
        tapped = compile_tapped({"forward": program}, [XnnpackPartitioner()])
        report = compare(tapped, *both, floating=floating)
        (call,) = report.calls
        call.checks += border.calls[0].checks
    else:
        report = compare(to_edge(program).to_executorch().pte_file, *both, floating=floating)
        (call,) = report.calls
    reasons = Counter(check.reason for check in call.checks if check.made is None)
    wrong = sum(check.wrong for check in call.checks)
    for reason, count in reasons.items():
        print(f"{name}: {count} not compared: {reason}", file=sys.stderr)
    finite = [item for item in call.layers if isfinite(item.runtime)]
    lowest = min(finite, key=lambda item: item.runtime, default=None)
    cells = [
        source,
        kind,
        "XNNPACK" if is_delegated else "kernels",
        *map(str, (len(call.checks), sum(reasons.values()), wrong, len(call.layers))),
        *(_median([getattr(x, key) for x in call.layers]) for key in ("design", "device")),
        _median([item.runtime for item in call.layers]),
        "equal" if lowest is None else f"{lowest.runtime:.0f} ({lowest.float_value})",
    ]
    return cells, list(report.lines()) if shows_layers or wrong else []


def _median(values: list[float]) -> str:
    found = statistics.median(values) if values else float("nan")
    return f"{found:.0f}" if isfinite(found) else "equal"


def main(arguments: list[str]) -> int:
    """Print the table; fail where an instruction of a right program is called wrong."""
    warnings.simplefilter("ignore")
    shows_layers = "--layers" in arguments
    names = [name for name in arguments if name != "--layers"] or list(MODELS)
    print("| " + " | ".join(HEADINGS) + " |")
    print("| --- | --- | --- |" + " ---: |" * (len(HEADINGS) - 4) + " --- |")
    failed = False
    for name in names:
        cells, said = row(name, shows_layers)
        print("| " + " | ".join(cells) + " |", flush=True)
        print(*said, sep="\n", end="\n" if said else "", file=sys.stderr)
        failed |= cells[5] != "0" or cells[6] == "0"
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
