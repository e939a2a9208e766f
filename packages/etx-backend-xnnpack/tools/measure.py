#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure what XNNPACK and ETX's own kernels take for each kind of operator, and a crossing.

usage: measure.py FOLDER [--write] [--turns N]

Each kind is a chain of one and of five equal operators, each compiled with XNNPACK and without it.
All programs run in turns of one process on one thread; the difference of the two lengths is what
an operator takes, what remains of the short one is the crossing. Programs stay in FOLDER; with
--turns 0 they are only compiled. With --write the figures become
`src/etx_backend_xnnpack/speeds.json`, which the partitioner reads; by hand, on a quiet machine.
Times are picoseconds by multiplication or element, of the call nanoseconds.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge, to_edge_transform_and_lower
from etx_quant import (
    Int8Quantizer,
    get_symmetric_quantization_config,
    get_weight_quantization_config,
    quantize,
)
from etx_runtime import Runtime, set_num_threads
from torch import Tensor, nn
from torch.nn import functional as F

FILE = Path(__file__).resolve().parents[1] / "src" / "etx_backend_xnnpack" / "speeds.json"
LONG = 5
SLICE = 4_000_000
"""Nanoseconds of one program in one turn."""


class Function(nn.Module):
    """A function of one tensor as a module."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        """Call it."""
        return self.function(x)


class Scaled(nn.Module):
    """A product and a sum of each element."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(shape))

    def forward(self, x: Tensor) -> Tensor:
        """Multiply and add."""
        return x * self.weight + 0.5


@dataclass(frozen=True)
class Kind:
    """An operator that keeps shapes, how much work one is, and in what numbers it computes."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    work: int
    recipe: str = "float32"


IMAGE = (1, 128, 28, 28)
ROWS, ROW = (64, 384), (1, 1024)
MATRICES = (6, 96, 96)
PIXELS = 128 * 28 * 28


def convolution(kernel: int, groups: int = 1) -> Callable[[], nn.Module]:
    """Make a convolution of 128 channels."""
    return lambda: nn.Conv2d(128, 128, kernel, padding=kernel // 2, groups=groups)


def attention(x: Tensor) -> Tensor:
    """Attend to itself."""
    return F.scaled_dot_product_attention(x, x, x)


def rotate(x: Tensor) -> Tensor:
    """Join two slices."""
    return torch.cat([x[:, 100:], x[:, :100]], 1)


HEADS = (1, 6, 96, 64)
HEAVY = (
    ("convolution", convolution(3), IMAGE, PIXELS * 128 * 9),
    ("pointwise", convolution(1), IMAGE, PIXELS * 128),
    ("depthwise", convolution(3, 128), IMAGE, PIXELS * 9),
)
LINEAR = (
    ("linear", lambda: nn.Linear(384, 384), ROWS, 64 * 384 * 384),
    ("row", lambda: nn.Linear(1024, 1024), ROW, 1024 * 1024),
)
KINDS = (
    *(Kind(*row) for row in (*HEAVY, *LINEAR)),
    Kind("product", lambda: Function(lambda x: x @ x * 0.1), MATRICES, 6 * 96**3),
    Kind("attention", lambda: Function(attention), HEADS, 2 * 6 * 96 * 96 * 64),
    Kind("norm", lambda: nn.LayerNorm(384), ROWS, 64 * 384),
    Kind("softmax", lambda: nn.Softmax(-1), ROWS, 64 * 384),
    Kind("function", lambda: nn.GELU(), ROWS, 64 * 384),
    Kind("arithmetic", lambda: Scaled((64, 384)), ROWS, 2 * 64 * 384),
    Kind("pool", lambda: nn.MaxPool2d(3, 1, 1), IMAGE, PIXELS),
    Kind("move", lambda: Function(rotate), ROWS, 64 * 384),
    *(Kind(*row, "int8") for row in (*HEAVY, *LINEAR)),
    *(Kind(*row, "rows") for row in (*HEAVY[:2], *LINEAR)),
    *(Kind(*row, "int4") for row in LINEAR),
)
SMALL = Kind("call", lambda: Function(lambda x: x + 1), (1, 4), 4)


def quantized(kind: Kind, model: nn.Module, x: Tensor) -> nn.Module:
    """Return the model in the kind's numbers."""
    if kind.recipe == "float32":
        return model
    static = get_symmetric_quantization_config(is_per_channel=True)
    config = {
        "int8": static,
        "rows": get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True),
        "int4": get_weight_quantization_config(4, 32, is_dynamic=True),
    }[kind.recipe]
    return quantize(model, [(x,)], Int8Quantizer().set_global(config), progress=lambda *_: None)


def compile_kind(kind: Kind, length: int, folder: Path) -> dict[str, Path]:
    """Compile a chain for both where it is not there; return the files by who computes."""
    stem = f"{kind.name}-{kind.recipe}-{length}"
    found = {name: folder / f"{stem}-{name}.pte" for name in ("own", "xnnpack")}
    if all(file.exists() for file in found.values()):
        return found
    print(f"compiling {stem}", file=sys.stderr, flush=True)
    torch.manual_seed(0)
    x = torch.rand(kind.shape)
    model = nn.Sequential(*(kind.make() for _ in range(length))).eval()
    program = torch.export.export(quantized(kind, model, x), (x,))
    everything = [XnnpackPartitioner(heavy_only=False)]
    to_edge(program).to_executorch().save(found["own"])
    edge = to_edge_transform_and_lower(program, partitioner=everything)
    edge.to_executorch().save(found["xnnpack"])
    return found


def measure(kinds: list[Kind], turns: int, folder: Path) -> dict[tuple[Kind, int, str], float]:
    """Return the median nanoseconds of an execution of each program, all run in turns."""
    load = Runtime.get().load_program
    methods = {
        (kind, length, name): load(file).load_method("forward")
        for kind in kinds
        for length in (1, LONG)
        for name, file in compile_kind(kind, length, folder).items()
    }
    x = {kind: torch.rand(kind.shape).numpy() for kind in kinds}
    first = {key: min(method.time_executions([x[key[0]]], 3)) for key, method in methods.items()}
    found: dict[Any, list[float]] = {key: [] for key in methods}
    for _ in range(turns):
        for key, method in methods.items():
            count = max(3, min(300, int(SLICE / max(first[key], 1))))
            found[key].append(min(method.time_executions([x[key[0]]], count)))
    return {key: statistics.median(times) for key, times in found.items() if times}


def figures(times: dict[tuple[Kind, int, str], float]) -> dict[str, Any]:
    """Return what the partitioner reads."""
    speeds: dict[str, Any] = {}
    for kind in KINDS:
        row = {}
        for name in ("own", "xnnpack"):
            one, many = times[kind, 1, name], times[kind, LONG, name]
            row[name] = round(1000 * max(many - one, 0.0) / (LONG - 1) / kind.work, 3)
        speeds.setdefault(kind.recipe, {})[kind.name] = row
    call = times[SMALL, 1, "xnnpack"] - times[SMALL, 1, "own"]
    kind = next(k for k in KINDS if k.name == "pointwise")
    inside = (times[kind, LONG, "xnnpack"] - times[kind, 1, "xnnpack"]) / (LONG - 1)
    moved = times[kind, 1, "xnnpack"] - inside - call
    return {
        "machine": machine(),
        "call": round(call),
        "transpose": round(1000 * max(moved, 0.0) / (2 * PIXELS), 3),
        "speeds": speeds,
    }


def machine() -> str:
    """Return the processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def main() -> None:
    """Measure and print; write if asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    parser.add_argument("--turns", type=int, default=15)
    options = parser.parse_args()
    set_num_threads(1)
    options.folder.mkdir(parents=True, exist_ok=True)
    times = measure([SMALL, *KINDS], options.turns, options.folder)
    if not times:
        return
    text = json.dumps(figures(times), indent=1)
    if options.write:
        FILE.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
