# SPDX-License-Identifier: BSD-3-Clause
"""Export, lower and save in one call each."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from etx_executorch.adapters.config import EdgeCompileConfig
from etx_executorch.adapters.managers import EdgeProgramManager, ExecutorchProgramManager, to_edge

__all__ = ["export_to_edge", "export_to_exec_prog", "save_pte_program"]

SUFFIX = ".pte"
OTHERS = (
    "example_kwarg_inputs",
    "dynamic_shapes",
    "edge_constant_methods",
    "edge_compile_config",
    "backend_config",
    "strict",
)


def export_to_edge(
    model: torch.nn.Module,
    example_inputs: tuple[Any, ...],
    example_kwarg_inputs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    edge_constant_methods: dict[str, Any] | None = None,
    edge_compile_config: EdgeCompileConfig | None = None,
    strict: bool = True,
    verbose: bool = True,
) -> EdgeProgramManager:
    """Export a model and lower it to the Edge dialect."""
    exported = torch.export.export(
        model, example_inputs, example_kwarg_inputs, dynamic_shapes=dynamic_shapes, strict=strict
    )
    edge = to_edge(exported, edge_constant_methods, edge_compile_config)
    if verbose:
        logging.info("Edge program:\n%s", edge.exported_program())
    return edge


def export_to_exec_prog(
    model: torch.nn.Module, example_inputs: tuple[Any, ...], *others: Any, **options: Any
) -> ExecutorchProgramManager:
    """Export a model and lower it to a file.

    The other arguments are those of `export_to_edge`, with `backend_config` in front of `strict`.
    """
    options |= dict(zip(OTHERS, others, strict=False))
    config = options.pop("backend_config", None)
    return export_to_edge(model, example_inputs, **options, verbose=False).to_executorch(config)


def save_pte_program(prog: ExecutorchProgramManager, model_name: str, output_dir: str = "") -> str:
    """Write the file `<output_dir>/<model_name>.pte`, and return its path."""
    name = model_name if model_name.endswith(SUFFIX) else model_name + SUFFIX
    path = str(Path(output_dir) / name)
    prog.save(path)
    return path
