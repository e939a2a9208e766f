# SPDX-License-Identifier: BSD-3-Clause
"""How long programs take on torch's kernels, next to eager: `nox -s aten-bench`.

Both sides take turns in one process, on the threads that torch has; the ratio is that of the
medians. The chain is 100 operators on a small tensor, where what surrounds a kernel is what counts.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etx_runtime
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "interop"))

ROUNDS = {"resnet18": 30, "minilm": 30, "chain": 2000}


class Chain(nn.Module):
    """100 operators, none of which the compiler can leave out."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(25):
            x = torch.relu(x * y + y - x)
        return x


def models() -> dict[str, tuple[nn.Module, tuple[Any, ...]]]:
    """Return the models with their inputs."""
    from modelset import build

    built = {name: build(name) for name in ("resnet18", "minilm")}
    chosen = {name: (model.module, model.example) for name, model in built.items()}
    return {**chosen, "chain": (Chain(), (torch.randn(8, 8), torch.randn(8, 8)))}


def seconds(call: Callable[[], Any]) -> float:
    """Time one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def ratio(module: nn.Module, inputs: tuple[Any, ...], rounds: int) -> tuple[float, float]:
    """Return the medians of eager and of the program."""
    exported = torch.export.export(module, inputs)
    program = to_edge(exported).to_executorch(ExecutorchBackendConfig(target="aten"))
    run = etx_runtime.load(program.buffer, kernels="aten", outputs="torch")
    times: tuple[list[float], list[float]] = ([], [])
    with torch.no_grad():
        for i in range(rounds + rounds // 4):
            pair = seconds(lambda: module(*inputs)), seconds(lambda: run(*inputs))
            if i >= rounds // 4:
                for kept, one in zip(times, pair, strict=True):
                    kept.append(one)
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> int:
    """Print a line for each model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="some of the models")
    options = parser.parse_args()
    torch.manual_seed(0)
    for name, (module, inputs) in models().items():
        if options.names and name not in options.names:
            continue
        eager, ours = ratio(module.eval(), inputs, ROUNDS[name])
        shown = f"eager {eager * 1e3:8.3f} ms, kernels aten {ours * 1e3:8.3f} ms"
        print(f"{name:10} {shown}, {ours / eager:.2f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
