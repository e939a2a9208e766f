# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.plan import Bank, MemoryPlanningPass, TargetMemoryMap
from etx_kernels_portable import library_path
from etx_kernels_portable.select.selection import families, select
from machines import BUILDS, HERE, MACHINES, Machine, build
from torch import nn

SRAM_BYTES = 2048
torch.set_num_threads(1)  # others compile meanwhile
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
os.environ.setdefault("OMP_NUM_THREADS", "1")
if launcher := shutil.which("ccache"):  # images of one processor share what they compile
    os.environ |= {
        "CMAKE_C_COMPILER_LAUNCHER": launcher,
        "CMAKE_CXX_COMPILER_LAUNCHER": launcher,
        "CCACHE_BASEDIR": str(HERE.parents[1]),
        "CCACHE_DEPEND": "1",
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_SLOPPINESS": "locale",
    }


class Net(nn.Module):
    """A convolution, then one of two layers; the batch is dynamic."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.left, self.right = nn.Linear(64, 5), nn.Linear(64, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.max_pool2d(self.conv(x).relu(), 2).flatten(1)
        chosen: torch.Tensor = torch.cond(
            x.sum() > 0, lambda y: self.left(y).tanh(), lambda y: self.right(y) - 1, (y,)
        )
        return chosen


class Noise(nn.Module):
    """Uniform and normal numbers in each dtype, of two draws each."""

    def forward(self) -> list[torch.Tensor]:
        return [
            draw(65, dtype=dtype)
            for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16)
            for draw in (torch.rand, torch.randn, torch.randn)
        ]


@dataclass(frozen=True)
class Model:
    folder: Path
    inputs: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]
    outputs: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """`net.pte` and raw inputs, planned for a small SRAM and a DRAM."""
    folder = tmp_path_factory.mktemp("model")
    torch.manual_seed(0)
    net = Net().eval().requires_grad_(False)
    batch = torch.export.Dim("batch", min=1, max=3)
    program = torch.export.export(net, (torch.ones(2, 2, 8, 8),), dynamic_shapes=({0: batch},))
    memories = TargetMemoryMap([Bank("SRAM", SRAM_BYTES, 1), Bank("DRAM", None, 2)])
    plan = MemoryPlanningPass(memory_map=memories)
    to_edge(program).to_executorch(ExecutorchBackendConfig(memory_planning_pass=plan)).save(
        folder / "net.pte"
    )
    to_edge(torch.export.export(Noise(), ())).to_executorch().save(folder / "noise.pte")
    inputs = [torch.rand(3, 2, 8, 8), -torch.rand(2, 2, 8, 8)]
    for index, x in enumerate(inputs):
        x.numpy().tofile(folder / f"x{index}.bin")
    content = (folder / "net.pte").read_bytes()
    (folder / "cut.pte").write_bytes(content[: len(content) // 2])
    with torch.no_grad():
        outputs = [net(x).numpy() for x in inputs]
    return Model(folder, [x.numpy() for x in inputs], outputs)


@pytest.fixture(scope="session")
def kernels(model: Model) -> list[str]:
    """How etx-run is built with the kernels of the models alone."""
    library = families(HERE.parents[1] / "packages" / "etx-kernels-portable", library_path())
    files = [str(model.folder / name) for name in ("net.pte", "noise.pte")]
    chosen = select(files, (), (), library)
    header = BUILDS / "etx_selection.h"
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text(chosen.header("etx-run's tests"))
    names = ";".join(chosen.families)
    return [f"-DETX_RUN_FAMILIES={names}", f"-DETX_KERNELS_SELECTION={header}"]


@pytest.fixture(scope="session", params=MACHINES, ids=lambda machine: machine.name)
def etx_run(request: pytest.FixtureRequest, kernels: list[str]) -> tuple[Machine, Path]:
    """A machine and etx-run built for it."""
    machine: Machine = request.param
    return machine, build(machine, "", *kernels)
