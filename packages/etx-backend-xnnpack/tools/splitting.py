#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure XNNPACK's fully connected layers whole and with their output channels in parts.

usage: splitting.py [--turns N] [--kilobytes N]

A part has at most --kilobytes of float32 weights; parts are joined by a concatenation, as a graph
of the delegate has to. All programs run in turns on one thread. Prints milliseconds of the
processor, the least of all turns, and their ratio: above one, parts are faster.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from etx_runtime import Method, Runtime, set_num_threads
from torch import Tensor, nn

SHAPES = ((128, 768, 3072), (128, 3072, 768), (128, 2048, 2048), (1, 2048, 2048))
COUNT = 5


class Parts(nn.Module):
    """A linear layer whose output channels are those of several."""

    def __init__(self, whole: nn.Linear, most: int) -> None:
        super().__init__()
        pairs = zip(whole.weight.split(most), whole.bias.split(most), strict=True)
        self.parts = nn.ModuleList(part(weight, bias) for weight, bias in pairs)

    def forward(self, x: Tensor) -> Tensor:
        """Join what they compute."""
        return torch.cat([each(x) for each in self.parts], -1)


def part(weight: Tensor, bias: Tensor) -> nn.Linear:
    """Return a layer with this weight and bias."""
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)
    return layer


def load(model: nn.Module, x: Tensor, file: Path) -> Method:
    """Compile a model to one delegate and load it."""
    edge = to_edge_transform_and_lower(
        torch.export.export(model.eval(), (x,)), partitioner=[XnnpackPartitioner(heavy_only=False)]
    )
    edge.to_executorch().save(file)
    return Runtime.get().load_program(file).load_method("forward")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--kilobytes", type=int, default=1024)
    options = parser.parse_args()
    set_num_threads(1)
    methods = {}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for rows, inputs, outputs in SHAPES:
            x, whole = torch.rand(rows, inputs), nn.Linear(inputs, outputs)
            most = max(options.kilobytes * 1024 // (4 * inputs), 1)
            for name, model in (("whole", whole), ("parts", Parts(whole, most))):
                method = load(model, x, Path(folder, f"{name}.pte"))
                methods[(rows, inputs, outputs), name] = method, x.numpy()
    found: dict[object, list[float]] = {key: [] for key in methods}
    for _ in range(options.turns):
        for key, (method, x) in methods.items():
            method.time_executions([x], 1)
            begin = time.process_time()
            method.time_executions([x], COUNT)
            found[key].append((time.process_time() - begin) / COUNT * 1000)
    for shape in SHAPES:
        whole, parts = (min(found[shape, name]) for name in ("whole", "parts"))
        print(f"{shape}: whole {whole:.3f} ms, in parts {parts:.3f} ms, ratio {whole / parts:.2f}")


if __name__ == "__main__":
    main()
