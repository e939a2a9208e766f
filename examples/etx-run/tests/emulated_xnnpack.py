# SPDX-License-Identifier: BSD-3-Clause
"""etx-run with XNNPACK linked in runs MobileNet on aarch64 and here to the same numbers.

By hand, `python3 noxfile.py -s machines-xnnpack`: XNNPACK is compiled for aarch64 first.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from etx_quant import XNNPACKQuantizer, get_symmetric_quantization_config, quantize
from machines import MACHINES, build
from torch import nn
from torch.export import ExportedProgram

FAMILIES = "binary;compare;conv;copy;matmul;max_pool;prim;random;reduce;unary;view"
SHAPE = (1, 3, 128, 128)
PROCESSORS = {"cortex-a53": "neon", "neoverse-n1": "dot products", "max": "all that qemu has"}
KINDS = ("float", "int8")
LEAST, SLACK = 90.0, 2.0
"""Decibels: results of this machine above their difference from those of the other; and how much
nearer to float32 than both int8 in eager may be, as ties are rounded otherwise."""


@dataclass(frozen=True)
class Model:
    folder: Path
    exact: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
    eager: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
    here: np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def exported(kind: str, x: torch.Tensor) -> tuple[ExportedProgram, torch.Tensor]:
    """Return MobileNet v2 in float32, or quantized by what it sees in pictures of noise.

    Its batch norms take the statistics of such pictures, or activations would vanish. torchvision's
    compiled operators belong to another torch. The second is what float32 computes.
    """
    sys.modules["torchvision._meta_registrations"] = ModuleType("torchvision._meta_registrations")
    from torchvision.models import mobilenet_v2

    torch.manual_seed(0)
    net = mobilenet_v2(weights=None, norm_layer=partial(nn.BatchNorm2d, momentum=1.0))
    net.requires_grad_(False)(torch.rand(8, *SHAPE[1:]))
    exact = net.eval()(x)
    if kind == "int8":
        quantizer = XNNPACKQuantizer()
        quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
        net = quantize(net, [(torch.rand(SHAPE),) for _ in range(4)], quantizer)
    return torch.export.export(net, (x,), strict=True), exact


def start(machine_name: str, folder: Path, processor: str = "") -> np.ndarray:
    """Run the model of a folder; return its output."""
    (machine,) = (machine for machine in MACHINES if machine.name == machine_name)
    options = ("-DETX_RUN_XNNPACK=ON", f"-DETX_RUN_FAMILIES={FAMILIES}")
    program = build(machine, "-xnnpack", *options)
    words = machine.command(program, ["net.pte", "--input", "x.bin", "--output", "y"])
    if processor:
        words[1:1] = ["-cpu", processor]
    done = subprocess.run(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^output 0: float32\[1, 1000\] -> y0.bin$", done.stdout, re.M), done.stdout
    return np.fromfile(folder / "y0.bin", np.float32)


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp(request.param)
    x = torch.rand(SHAPE, generator=torch.Generator().manual_seed(1))
    program, exact = exported(request.param, x)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    done = edge.to_executorch()
    calls = [n for n in done.exported_program().graph.nodes if n.op == "call_function"]
    assert len([n for n in calls if "call_delegate" in str(n.target)]) == 1
    assert len(calls) == 2, calls
    done.save(folder / "net.pte")
    x.numpy().tofile(folder / "x.bin")
    eager = program.module()(x).numpy().reshape(-1)
    return Model(folder, exact.numpy().reshape(-1), eager, start("host", folder))


def decibels(
    expected: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
    actual: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> float:
    noise = float(np.square(actual - expected.astype(np.float64)).sum())
    return 10 * float(np.log10(np.square(expected.astype(np.float64)).sum() / max(noise, 1e-30)))


@pytest.mark.parametrize("processor", PROCESSORS)
def test_aarch64_computes_what_this_machine_does(
    model: Model, processor: str, request: pytest.FixtureRequest
) -> None:
    there = start("aarch64", model.folder, processor)
    found, own = decibels(model.here, there), decibels(model.exact, model.eager)
    from_exact = decibels(model.exact, there)
    kind = request.node.callspec.params["model"]
    print(f"{kind} on {processor}: {found:.0f} dB from here, {from_exact:.0f} from float32", end="")
    print(f"; eager {own:.0f}")
    assert found >= LEAST
    assert from_exact >= min(LEAST, own - SLACK)
    assert int(np.argmax(there)) == int(np.argmax(model.here))
