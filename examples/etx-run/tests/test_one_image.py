# SPDX-License-Identifier: BSD-3-Clause
"""`etx select` of MobileNetV2 and the core are one small program, which computes as eager does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from etx_exir import to_edge
from machines import HERE, MACHINES, build_with
from torch import nn

SOURCES = HERE.parents[1] / "packages" / "etx-kernels-portable"
ETX = Path(sys.executable).with_name("etx")
MOST_TEXT = 84_000
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
LAST_STAGES = ((6, 160, 3, 2), (6, 320, 1, 1))


def layer(channels: int, out: int, size: int, stride: int, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(channels, out, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(out), nn.ReLU6())


class Inverted(nn.Module):
    """Wider, a convolution by channel, narrower; added where shapes allow."""

    def __init__(self, channels: int, out: int, factor: int, stride: int) -> None:
        super().__init__()
        wide = channels * factor
        layers = [layer(channels, wide, 1, 1)] if factor > 1 else []
        narrow = (nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out))
        self.layers = nn.Sequential(*layers, layer(wide, wide, 3, stride, wide), *narrow)
        self.adds = stride == 1 and channels == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layers(x)
        return x + y if self.adds else y


class MobileNetV2(nn.Module):
    """The paper's network (arXiv 1801.04381, table 2)."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [layer(3, 32, 3, 2)]
        channels = 32
        for factor, out, count, stride in (*STAGES, *LAST_STAGES):
            for i in range(count):
                layers.append(Inverted(channels, out, factor, stride if i == 0 else 1))
                channels = out
        self.features = nn.Sequential(*layers, layer(channels, 1280, 1, 1))
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.classifier(self.features(x).mean((2, 3)))
        return y


def test_mobilenet_and_the_core_are_one_small_program(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, image = MobileNetV2().eval().requires_grad_(False), torch.rand(1, 3, 224, 224)
    assert sum(each.numel() for each in net.parameters()) == 3_504_872
    to_edge(torch.export.export(net, (image,))).to_executorch().save(tmp_path / "net.pte")
    image.numpy().tofile(tmp_path / "image.bin")

    kernels = tmp_path / "kernels"
    command = [ETX, "select", tmp_path / "net.pte", "-o", kernels, "--optimize=-Os"]
    command += ["--level", "base", "--sources", SOURCES]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]

    host = next(machine for machine in MACHINES if machine.name == "host")
    options = ["-DCMAKE_BUILD_TYPE=MinSizeRel", f"-DKERNELS={kernels}"]
    build_with(host, Path(__file__).parent / "one_image", tmp_path / "build", options, "one_image")
    program = tmp_path / "build" / "one_image"
    sizes = subprocess.run(["size", "-A", program], check=True, capture_output=True, text=True)
    texts = [line.split() for line in sizes.stdout.splitlines() if line.startswith(".text")]
    assert int(texts[0][1]) <= MOST_TEXT, sizes.stdout

    words = [str(each) for each in (program, tmp_path / "net.pte", tmp_path / "image.bin")]
    found = subprocess.run(words, capture_output=True)
    assert found.returncode == 0, found.stderr
    result = torch.from_numpy(np.frombuffer(found.stdout, np.float32).copy()).view(1, 1000)
    torch.testing.assert_close(result, net(image), rtol=1e-4, atol=1e-5)
