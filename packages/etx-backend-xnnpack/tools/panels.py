#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure XNNPACK with weights larger than a core's cache, read whole and in panels.

usage: panels.py [--turns N] [--threads N]

Both are the same file, loaded with the option `weight_panels` and without it. They run in turns.
Prints milliseconds of the processor, the least of all turns, and their ratio: above one, panels
are faster. Weights that the cache holds are never read in panels: there the ratio is noise.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from etx_quant import quantize
from etx_runtime import Method, Runtime, set_num_threads
from torch import Tensor, nn

LINEAR = ((128, 768, 3072), (128, 3072, 768), (128, 2048, 2048), (16, 2048, 2048), (1, 2048, 2048))
CONVOLUTIONS = (
    *[(1, 7, 512, 2048), (1, 14, 1024, 512), (1, 28, 256, 256)],
    *[(3, 14, 256, 256), (3, 7, 512, 512), (3, 28, 128, 128)],
)
COUNT = 5


def cases() -> list[tuple[str, nn.Module, Tensor]]:
    """Return layers with their arguments."""
    found: list[tuple[str, nn.Module, Tensor]] = []
    for rows, inputs, outputs in LINEAR:
        layer, x = nn.Linear(inputs, outputs), torch.rand(rows, inputs)
        shape = f"linear {rows} x {inputs} x {outputs}"
        found.append((f"{shape}, float32", layer, x))
        found.append((f"{shape}, int8 rows", quantize(layer, [(x,)], recipe="int8-dynamic"), x))
    for kernel, side, inputs, outputs in CONVOLUTIONS:
        name = f"convolution {kernel} x {kernel}, {side} x {side} x {inputs} x {outputs}"
        layer, x = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2), (1, inputs, side, side)
        found.append((f"{name}, float32", layer, torch.rand(x)))
    return found


def load(file: Path, has_panels: bool) -> Method:
    """Load a file with or without panels."""
    options = {"XnnpackBackend": {"weight_panels": has_panels}}
    return Runtime.get().load_program(file).load_method("forward", backend_options=options)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    set_num_threads(options.threads)
    methods = {}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for name, model, x in cases():
            program = torch.export.export(model.eval(), (x,))
            edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
            file = Path(folder, "model.pte")
            edge.to_executorch().save(file)
            for has_panels in (False, True):
                methods[name, has_panels] = load(file, has_panels), x.numpy()
    found: dict[tuple[str, bool], list[float]] = {key: [] for key in methods}
    for _ in range(options.turns):
        for key, (method, x) in methods.items():
            method.time_executions([x], 1)
            begin = time.process_time()
            method.time_executions([x], COUNT)
            found[key].append((time.process_time() - begin) / COUNT * 1000)
    for name, has_panels in found:
        if has_panels:
            whole, panels = (min(found[name, key]) for key in (False, True))
            ratio = whole / panels
            print(f"{name}: whole {whole:.3f} ms, in panels {panels:.3f} ms, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
