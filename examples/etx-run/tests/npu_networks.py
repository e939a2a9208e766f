# SPDX-License-Identifier: BSD-3-Clause
"""Networks for Ethos-U with what TOSA's reference model makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import reference_model
import tiny
import torch
from etx_backend_arm.cortex_m import lower_to_cortex_m
from etx_backend_arm.ethos_u.backend import EthosUPartitioner, EthosUQuantizer
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from etx_quant import quantize, quantize_edges
from lowered import delegates, lower
from torch import Tensor, nn

SPEC = EthosUCompileSpec("ethos-u55-128")


def keywords() -> tuple[nn.Module, list[tuple[Tensor, ...]]]:
    """Return the keyword network, which is one delegate."""
    network = tiny.make("kws", 4)
    return network.model, network.inputs


def parts() -> tuple[nn.Module, list[tuple[Tensor, ...]]]:
    """Return a network whose middle is not for the NPU: a stride of four, windows of five."""
    torch.manual_seed(0)
    middle = nn.Conv2d(8, 8, 5, stride=4, padding=1)
    layers = nn.Conv2d(3, 8, 3, padding=1), middle, nn.Conv2d(8, 12, 4)
    model = nn.Sequential(layers[0], nn.ReLU(), *layers[1:]).eval()
    return model, [(torch.randn(1, 3, 16, 16),) for _ in range(4)]


def write(name: str, folder: Path) -> Path:
    """Write the file, one input of it and what the reference model returns for that."""
    model, batches = {"keywords": keywords, "parts": parts}[name]()
    quantized = quantize(model, batches, EthosUQuantizer(SPEC))
    quantize_edges(quantized)
    random = np.random.default_rng(0)
    x = random.integers(-128, 128, batches[0][0].shape, dtype=np.int8)
    tensor = torch.from_numpy(x)
    program = torch.export.export(quantized, (tensor,))
    edge = to_edge_transform_and_lower(program, partitioner=[EthosUPartitioner(SPEC)])
    count = len(delegates(edge.exported_program("forward")))
    assert count == {"keywords": 1, "parts": 2}[name]
    path = folder / f"{name}.pte"
    config = ExecutorchBackendConfig(target=None)
    lower_to_cortex_m(edge).to_executorch(config).save(path)
    (whole,) = delegates(lower(quantized, tensor))
    (expected,) = reference_model.run(whole.processed_bytes, x)
    np.save(folder / "input.npy", x)
    np.save(folder / "expected.npy", expected)
    return path
