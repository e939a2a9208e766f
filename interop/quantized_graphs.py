# SPDX-License-Identifier: BSD-3-Clause
"""Random quantized models: `quantized_graphs.py COUNT SEED` lowers each for target etx, to XNNPACK
and for both runtimes, and compares what they compute with the quantized model.

Odd seeds draw a stage: one operator with weights, and what may follow it. In static int8 its result
is at most one step from the model's; with ranges of the data, what one step of its argument makes.
Even ones draw several stages, in which such steps add up: in the mean they stay below one.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etx_runtime
import executorch.kernels.quantized  # noqa: F401  registers its kernels
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from etx_quant import (
    Int8Quantizer,
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
    get_weight_quantization_config,
    quantize,
)
from executorch.runtime import Runtime
from torch import Tensor, nn
from torch.nn import functional as F

CALLS, ROUNDING = 8, 1e-3
STATIC = ("int8", "int8-per-tensor", "xnnpack")
CONFIGURATIONS: dict[str, Callable[[], Any]] = {
    "int8": Int8Quantizer,
    "int8-per-tensor": lambda: Int8Quantizer().set_global(get_symmetric_quantization_config()),
    "xnnpack": lambda: XNNPACKQuantizer().set_global(
        get_symmetric_quantization_config(is_per_channel=True)
    ),
    "dynamic": lambda: Int8Quantizer().set_global(
        get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
    ),
    "int8-weight": lambda: Int8Quantizer().set_global(get_weight_quantization_config()),
    "int4": lambda: Int8Quantizer().set_global(
        get_weight_quantization_config(bits=4, group_size=8)
    ),
}
ACTIVATIONS: tuple[Callable[[Tensor], Tensor], ...] = (
    F.relu,
    F.relu6,
    F.hardtanh,
    F.leaky_relu,
    F.elu,
    F.silu,
    F.gelu,
    F.hardswish,
    F.hardsigmoid,
    torch.sigmoid,
    torch.tanh,
    lambda x: 1 - x,
    lambda x: 2 * x,
)


class Images(nn.Module):
    """Convolutions over (N, C, H, W), a norm or none, and what mixes, pools and resizes."""

    def __init__(self, draw: random.Random, stages: int) -> None:
        super().__init__()
        self.steps: list[Callable[[Tensor, Tensor], Tensor]] = []
        self.layers = nn.ModuleList()
        for _ in range(stages):
            self.layers.append(self.layer(draw))
            self.steps.append(draw.choice((self.mix(draw), self.resize(draw), self.act(draw))))

    def layer(self, draw: random.Random) -> nn.Module:
        kernel, groups = draw.choice((1, 3)), draw.choice((1, 1, 2, 8))
        layer = nn.Conv2d(8, 8, kernel, padding=kernel // 2, groups=groups)
        return nn.Sequential(layer, nn.BatchNorm2d(8)) if draw.random() < 0.4 else layer

    def act(self, draw: random.Random) -> Callable[[Tensor, Tensor], Tensor]:
        function = draw.choice(ACTIVATIONS)
        return lambda y, x: function(y)

    def mix(self, draw: random.Random) -> Callable[[Tensor, Tensor], Tensor]:
        steps: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
            torch.add,
            torch.sub,
            torch.mul,
            lambda y, x: F.relu(y + x),
            lambda y, x: torch.cat((y, x), 1)[:, 4:12],
            lambda y, x: y * y.mean((2, 3), keepdim=True),
        )
        return draw.choice(steps)

    def resize(self, draw: random.Random) -> Callable[[Tensor, Tensor], Tensor]:
        steps: tuple[Callable[[Tensor], Tensor], ...] = (
            lambda y: F.max_pool2d(y, 3, 1, 1),
            lambda y: F.avg_pool2d(y, 3, 1, 1),
            lambda y: F.interpolate(F.max_pool2d(y, 2), scale_factor=2, mode="nearest"),
            lambda y: F.interpolate(y, scale_factor=2, mode="bilinear"),
            lambda y: F.pad(y, (1, 0, 0, 1)),
        )
        function = draw.choice(steps)
        return lambda y, x: function(y)

    def forward(self, x: Tensor) -> Tensor:
        for layer, step in zip(self.layers, self.steps, strict=True):
            y = layer(x)
            x = step(y, x)
            x = x[:, :, :8, :8]
        return x


class Rows(Images):
    """Linear layers over rows."""

    def layer(self, draw: random.Random) -> nn.Module:
        return nn.Linear(16, 16, bias=draw.random() < 0.7)

    def mix(self, draw: random.Random) -> Callable[[Tensor, Tensor], Tensor]:
        steps: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
            torch.add,
            torch.sub,
            torch.mul,
            lambda y, x: torch.cat((y, x), -1)[..., 8:24],
            lambda y, x: F.layer_norm(y + x, (16,)),
        )
        return draw.choice(steps)

    resize = mix

    def forward(self, x: Tensor) -> Tensor:
        for layer, step in zip(self.layers, self.steps, strict=True):
            x = step(layer(x), x)
        return x


def programs(quantized: nn.Module, call: tuple[Tensor]) -> dict[str, bytes]:
    """Return the files of all targets."""
    both = ExecutorchBackendConfig(target="executorch")
    program = torch.export.export(quantized, call)
    edge = to_edge(program)
    delegated = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    return {
        "etx": edge.to_executorch().buffer,
        "xnnpack": delegated.to_executorch(both).buffer,
        "shared": edge.to_executorch(both).buffer,
    }


def results(files: dict[str, bytes], call: tuple[Tensor]) -> dict[str, Tensor]:
    """Run the files on ETX, and on ExecuTorch those that are for both."""
    found = {
        f"{name} on ETX": etx_runtime.load(data, outputs="torch")(*call)
        for name, data in files.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        for name in ("xnnpack", "shared"):
            path = Path(folder, f"{name}.pte")
            path.write_bytes(files[name])
            method = Runtime.get().load_program(path).load_method("forward")
            found[f"{name} on ExecuTorch"] = method.execute(call)[0].clone()
    return found


def step_of(quantized: Any) -> float:
    """Return the step of the result, zero where it is computed in float."""
    last = next(node for node in quantized.graph.nodes if node.op == "output")
    moves = (torch.ops.aten.slice.Tensor, torch.ops.aten.alias.default)
    while last.op == "output" or last.target in moves:
        (last,) = last.all_input_nodes
    return float(last.args[1]) if "dequantize_per_tensor" in str(last.target) else 0.0


def allowed(name: str, quantized: Any, model: Images, call: Tensor, expected: Tensor) -> float:
    """Return how far a result of one stage may be from the quantized model's."""
    rounding = ROUNDING * float(expected.abs().max())
    step = step_of(quantized)
    if name in STATIC and step:
        return 1.001 * step + 1e-6
    if name in ("int8-weight", "int4"):
        return rounding
    weights = [p for n, p in model.named_parameters() if n.endswith("weight") and p.dim() > 1]
    largest = max(float(weight.abs().max()) for weight in weights)
    gain = 2 * max(1.0, float(call.abs().max()))
    return gain * float(call.max() - call.min()) / 255 * largest + rounding


def attempt(seed: int) -> tuple[str, dict[str, float]]:
    """Return a name, and how far each result is, in what is allowed; above one is apart."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    name = draw.choice([*STATIC, *CONFIGURATIONS])
    kind = Rows if name not in STATIC or draw.random() < 0.3 else Images
    stages = 1 if seed % 2 else draw.randrange(2, 5)
    model = kind(draw, stages).eval()
    sizes = (1, 16) if kind is Rows else (1, 8, 8, 8)
    calls = [(torch.randn(sizes),) for _ in range(CALLS)]
    quantized = quantize(model, calls, CONFIGURATIONS[name]())
    expected = quantized(*calls[0]).detach()
    found = results(programs(quantized, calls[0]), calls[0])
    limit = allowed(name, quantized, model, calls[0][0], expected)
    apart = {}
    for where, result in found.items():
        error = (result - expected).abs()
        apart[where] = float(error.max() if stages == 1 else error.mean()) / limit
    return f"{name}, {kind.__name__}, {stages} stages", apart


def main(count: int, seed: int) -> int:
    worst: Counter[str] = Counter()
    failures = []
    for each in range(seed, seed + count):
        try:
            name, apart = attempt(each)
        except Exception as error:
            failures.append(f"{each}: {type(error).__name__}: {str(error)[:300]}")
            continue
        for where, far in apart.items():
            worst[where] = max(worst[where], far)
            if not far <= 1:
                failures.append(f"{each} ({name}), {where}: {far:.2f} of what is allowed")
    for where, far in sorted(worst.items()):
        print(f"{where}: at most {far:.2f} of what is allowed")
    print(f"{count} models from seed {seed}, {len(failures)} findings", *failures, sep="\n")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
