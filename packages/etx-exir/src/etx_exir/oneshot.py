# SPDX-License-Identifier: BSD-3-Clause
"""The short way: one call from a module to a `.pte` file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn
from torch.export import ExportedProgram

from etx_exir.backend import Partitioner
from etx_exir.capture import capture
from etx_exir.config import EdgeCompileConfig, ExecutorchBackendConfig
from etx_exir.lower import Observer
from etx_exir.program import ExecutorchProgramManager, to_edge_transform_and_lower
from etx_exir.progress import Progress, reporting

__all__ = ["compile"]


def compile(
    model: nn.Module | ExportedProgram,
    example_inputs: tuple[Any, ...] = (),
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    path: str | Path | None = None,
    partitioner: Sequence[Partitioner] | None = None,
    constant_methods: Mapping[str, Any] | None = None,
    compile_config: EdgeCompileConfig | None = None,
    config: ExecutorchBackendConfig | None = None,
    observer: Observer | None = None,
    progress: Progress | None = None,
) -> ExecutorchProgramManager:
    """Export `model` in evaluation mode, lower it, and write it to `path` if one is given.

    `progress` is called as each step begins; `etx_exir.Console` shows it on a terminal.
    """
    with reporting(progress):
        program = capture(model, example_inputs, example_kwargs, dynamic_shapes)
        edge = to_edge_transform_and_lower(
            program,
            partitioner=partitioner,
            constant_methods=constant_methods,
            compile_config=compile_config,
            observer=observer,
        )
        result = edge.to_executorch(config)
        if path is not None:
            result.save(path)
    return result
