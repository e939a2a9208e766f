# SPDX-License-Identifier: BSD-3-Clause
"""Print flash, RAM and instructions of an int8 MobileNetV2 at 224 on a Cortex-M55, as Markdown.

Needs what `tiny_table.py` needs, and torchvision's code. The model is not in the image: it lies in
the emulated board's external memory, where QEMU puts it. Each image returned the bytes of this
machine's runtime. Weights are random; batch norms are settled. Ten minutes.
"""

from __future__ import annotations

import sys
import tempfile
import types
from pathlib import Path

import torch
from etx_backend_arm.cortex_m import CortexMQuantizer, lower_to_cortex_m
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize, quantize_edges
from tiny_table import HEADER, row
from torch import nn

NAME, CORE = "mobilenet_v2", "cortex-m55"
SHAPE = (1, 3, 224, 224)
EXTERNAL = 0x60000000


def main() -> int:
    """Quantize, build, count, print."""
    inputs = [(torch.randn(SHAPE),) for _ in range(4)]
    model = quantize(make(), inputs, CortexMQuantizer())
    quantize_edges(model)
    given = (torch.zeros(SHAPE, dtype=torch.int8),)
    edge = lower_to_cortex_m(to_edge(torch.export.export(model, given)))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / f"{NAME}.pte"
        edge.to_executorch(ExecutorchBackendConfig(target=None)).save(path)
        print(f"{HEADER}\n| {NAME}, int8 | {CORE} | {row(path, CORE, [], EXTERNAL)} |")
    return 0


def make() -> nn.Module:
    """Return the network with batch norms that have seen data."""
    # torchvision's compiled operators belong to one torch; only its Python code is used.
    sys.modules["torchvision._meta_registrations"] = types.ModuleType("registrations")
    from torchvision import models

    torch.manual_seed(0)
    network = models.mobilenet_v2()
    with torch.no_grad():
        for _ in range(3):
            network(torch.randn(4, *SHAPE[1:]))
    return network.eval().requires_grad_(False)


if __name__ == "__main__":
    sys.exit(main())
