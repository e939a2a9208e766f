# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge


def pytest_collection_finish() -> None:
    gc.freeze()  # torch's modules: the collector walks them again and again


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.default_generator.manual_seed(0)  # torch.manual_seed formats stacks, for GPUs


@pytest.fixture
def compiled() -> Callable[..., Any]:
    """Return a function that lowers a module and loads it with kernels of these names."""

    def load(
        module: torch.nn.Module,
        inputs: tuple[Any, ...],
        kernels: str | list[str] = "aten",
        dynamic_shapes: Any = None,
    ) -> Any:
        exported = torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes)
        program = to_edge(exported).to_executorch(ExecutorchBackendConfig(target=None))
        return etx_runtime.load(program.buffer, kernels=kernels, outputs="torch")

    return load


def pytest_addoption(parser):
    group = parser.getgroup("samples")
    group.addoption("--samples", type=int, default=150, help="OpInfos and dtypes that are drawn")
    seed = random.SystemRandom().randrange(10**6)
    group.addoption("--samples-seed", type=int, default=seed, help="draws them")


def pytest_report_header(config):
    return f"samples drawn by --samples-seed {config.getoption('--samples-seed')}"
