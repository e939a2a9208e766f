# SPDX-License-Identifier: BSD-3-Clause
"""Small networks on each NPU: delegates, operators beside them, and the simulator's results.

    python benchmarks/networks.py [TARGET ...] [NETWORK ...]

Each is quantized with EthosUQuantizer on random inputs, compiled, and run on the simulator; "equal"
is equal to TOSA's reference model on each delegate, "dB" signal to error against the quantized
model in torch. An Ethos-U85 is compiled only. Weights are random; batch norms are settled.
Networks of torchvision and timm are there where their code is installed.
"""

from __future__ import annotations

import sys
import time
import traceback
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import etx_runtime
import tiny
from etx_backend_arm.ethos_u.backend import EthosUPartitioner, EthosUQuantizer
from etx_backend_arm.ethos_u.compile_spec import TARGETS, EthosUCompileSpec
from etx_backend_arm.lowering import lower_program
from etx_exir import to_edge_transform_and_lower
from etx_quant import quantize
from lowered import delegates, interpreted
from test_networks import NETWORKS, noise

DEFAULT = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
Network = tuple[Callable[[], nn.Module], tuple[int, ...]]


class Layers(nn.Module):
    """A function of a network's layers."""

    def __init__(self, function: Callable[..., Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.function, self.layers = function, nn.ModuleDict(layers)

    def forward(self, x: Tensor) -> Tensor:
        """Call the function."""
        return self.function(self.layers, x)


def _tcn() -> nn.Module:
    def run(m: Any, x: Tensor) -> Tensor:
        for i in range(3):
            made = torch.relu(m[f"conv{i}"](nn.functional.pad(x, (2 * 2**i, 0))))
            x = made + m[f"skip{i}"](x)
        return m["head"](x.mean(-1))

    sizes = [4, 8, 16, 16]
    layers: dict[str, nn.Module] = {"head": nn.Linear(16, 5)}
    for i in range(3):
        layers[f"conv{i}"] = nn.Conv1d(sizes[i], sizes[i + 1], 3, dilation=2**i)
        layers[f"skip{i}"] = nn.Conv1d(sizes[i], sizes[i + 1], 1)
    return Layers(run, **layers)


def _gru() -> nn.Module:
    layers = {"gru": nn.GRU(8, 16, batch_first=True), "out": nn.Linear(16, 3)}
    return Layers(lambda m, x: m["out"](m["gru"](x)[0][:, -1]), **layers)


def _lstm() -> nn.Module:
    layers = {"lstm": nn.LSTM(8, 16, 2, batch_first=True), "out": nn.Linear(16, 3)}
    return Layers(lambda m, x: m["out"](m["lstm"](x)[0][:, -1]), **layers)


def _vit() -> nn.Module:
    class Vit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patch = nn.Conv2d(3, 32, 8, 8)
            self.token = nn.Parameter(torch.randn(1, 1, 32) * 0.1)
            self.place = nn.Parameter(torch.randn(1, 17, 32) * 0.1)
            layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 5)

        def forward(self, x: Tensor) -> Tensor:
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
            return self.head(self.norm(self.layers(x))[:, 0])

    return Vit()


def _mixer() -> nn.Module:
    def run(m: Any, x: Tensor) -> Tensor:
        x = m["patch"](x).flatten(2).transpose(1, 2)
        x = x + m["tokens"](m["first"](x).transpose(1, 2)).transpose(1, 2)
        x = x + m["channels"](m["second"](x))
        return m["head"](x.mean(1))

    return Layers(
        run,
        patch=nn.Conv2d(3, 24, 8, 8),
        first=nn.LayerNorm(24),
        second=nn.LayerNorm(24),
        tokens=nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)),
        channels=nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 24)),
        head=nn.Linear(24, 5),
    )


def _squeeze_excite() -> nn.Module:
    def run(m: Any, x: Tensor) -> Tensor:
        x = nn.functional.hardswish(m["norm"](m["conv"](x)))
        gate = nn.functional.hardsigmoid(m["up"](torch.relu(m["down"](x.mean((2, 3), True)))))
        return m["head"]((x * gate).mean((2, 3)))

    return Layers(
        run,
        conv=nn.Conv2d(3, 16, 3, 2, 1),
        norm=nn.BatchNorm2d(16),
        down=nn.Conv2d(16, 4, 1),
        up=nn.Conv2d(4, 16, 1),
        head=nn.Linear(16, 5),
    )


def _lite() -> nn.Module:
    """As EfficientNet-lite: inverted residuals with ReLU6, no squeeze and excitation."""
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU6()]
    for inputs, outputs, stride in ((16, 16, 1), (16, 24, 2), (24, 24, 1), (24, 40, 2)):
        layers.append(_Inverted(inputs, outputs, stride))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(40, 10))


class _Inverted(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        wide = 4 * inputs
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, wide, 1),
            nn.BatchNorm2d(wide),
            nn.ReLU6(),
            nn.Conv2d(wide, wide, 5, stride, 2, groups=wide),
            nn.BatchNorm2d(wide),
            nn.ReLU6(),
            nn.Conv2d(wide, outputs, 1),
            nn.BatchNorm2d(outputs),
        )
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.is_residual else self.layers(x)


IMAGE = (1, 3, 64, 64)
OWN: dict[str, Network] = {
    "tcn": (_tcn, (1, 4, 32)),
    "gru": (_gru, (1, 6, 8)),
    "lstm_two": (_lstm, (1, 6, 8)),
    "vit": (_vit, (1, 3, 32, 32)),
    "mixer": (_mixer, (1, 3, 32, 32)),
    "squeeze_excite": (_squeeze_excite, (1, 3, 32, 32)),
    "lite": (_lite, IMAGE),
}
TORCHVISION = (
    "mobilenet_v2",
    "mobilenet_v3_small",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "resnet18",
    "mnasnet0_5",
    "efficientnet_b0",
    "regnet_y_400mf",
)
TIMM = (
    "efficientnet_lite0",
    "mobilenetv4_conv_small",
    "ghostnet_050",
    "mobilevit_xxs",
    "convnext_atto",
    "test_vit",
    "test_resnet",
    "lcnet_050",
    "tinynet_e",
    "hardcorenas_a",
    "repvgg_a0",
)


def networks() -> dict[str, Network]:
    """Return what makes each network, and the shape of its input."""
    found: dict[str, Network] = {name: row[:2] for name, row in NETWORKS.items()} | OWN
    for name in tiny.MAKE:
        found[name] = (tiny.MAKE[name], tiny.SHAPES[name])
    # torchvision's compiled operators belong to one torch; only its Python code is used.
    sys.modules["torchvision._meta_registrations"] = types.ModuleType("registrations")
    try:
        from torchvision import models

        for name in TORCHVISION:
            found[name] = (getattr(models, name), IMAGE)
        import timm

        for name in TIMM:
            size = (160, 160) if "vit" in name else (64, 64)
            found[f"timm:{name}"] = (lambda name=name: timm.create_model(name), (1, 3, *size))
    except ImportError:
        pass
    return found


def settled(network: Network) -> tuple[nn.Module, list[Tensor]]:
    """Return a network whose batch norms have seen data, and inputs."""
    create, shape = network
    torch.manual_seed(0)
    model = create().train()
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(4, *shape[1:]))
    return model.eval(), [torch.randn(shape) for _ in range(4)]


def tried(network: Network, target: str) -> str:
    """Return a row's cells."""
    model, (x, *others) = settled(network)
    spec = EthosUCompileSpec(target)
    quantized = quantize(model, [(each,) for each in others], EthosUQuantizer(spec))
    exported = torch.export.export(quantized, (x,))
    edge = to_edge_transform_and_lower(exported, partitioner=[EthosUPartitioner(spec)])
    program = edge.exported_program("forward")
    found = delegates(program)
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    beside = [str(n.target) for n in calls if "delegate" not in str(n.target)]
    beside = [n for n in beside if "getitem" not in n and "quantize_per_tensor" not in n]
    row = f"{len(found)} delegate(s), {len(beside)} beside {sorted(set(beside))[:4]}"
    buffer = bytes(edge.to_executorch().buffer)
    if target.startswith("ethos-u85"):
        return row
    start = time.thread_time()
    y = np.asarray(etx_runtime.load(buffer)(x.numpy()))
    took = time.thread_time() - start
    equal = "equal" if np.array_equal(y, _reference(program, x)) else "NOT EQUAL"
    expected = quantized(x).detach()
    scales = [float(n.args[1]) for n in calls if "dequantize_per_tensor" in str(n.target)]
    steps = float((torch.from_numpy(y) - expected).abs().max()) / max(scales, default=1.0)
    decibels = noise(torch.from_numpy(y), expected)
    return f"{row}, {equal}, {decibels:.0f} dB, {steps:.0f} steps, {took:.1f} s"


def _reference(program: ExportedProgram, x: Tensor) -> np.ndarray:
    """Return what a program makes whose delegates run on the reference model."""
    (made,) = interpreted(program, x, graph_of=_with_narrow_tables)
    return np.asarray(made)


def _with_narrow_tables(lowered: Any) -> bytes:
    return lower_program(lowered.original_module, narrow_tables=True).serialize()


def main(words: list[str]) -> int:
    """Print a row for each network and target; return how many are not right."""
    known, wrong = networks(), 0
    targets = [word for word in words if word in TARGETS] or list(DEFAULT)
    names = [word for word in words if word not in TARGETS] or list(known)
    for name in names:
        for target in targets:
            try:
                row = tried(known[name], target)
            except Exception as error:
                if "-v" in sys.argv:
                    traceback.print_exc()
                row = f"FAILED: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
            wrong += "FAILED" in row or "NOT EQUAL" in row
            print(f"{name:22} {target:14} {row}", flush=True)
    return wrong


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(min(main([w for w in sys.argv[1:] if w != "-v"]), 1))
