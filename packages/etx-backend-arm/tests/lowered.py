# SPDX-License-Identifier: BSD-3-Clause
"""Programs lowered to TOSA, their delegates and the operators in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import reference_model
import torch
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.tosa import Op, read_tosa
from etx_exir import to_edge_transform_and_lower
from etx_exir.ir.delegate_call import CALL_DELEGATE, LoweredBackendModule
from torch import nn
from torch.export import ExportedProgram


def lower(model: nn.Module, *inputs: torch.Tensor, partitioner: Any = None) -> ExportedProgram:
    """Return the Edge program of a model after delegation."""
    program = torch.export.export(model, inputs)
    chosen = partitioner or TOSAPartitioner()
    return to_edge_transform_and_lower(program, partitioner=[chosen]).exported_program("forward")


def delegates(program: ExportedProgram) -> list[LoweredBackendModule]:
    """Return the delegates of a program."""
    calls = [n for n in program.graph.nodes if n.target is CALL_DELEGATE]
    return [getattr(program.graph_module, str(n.args[0].target)) for n in calls]


def operators(graph: bytes) -> list[Op]:
    """Return the operators of a TOSA file that are not constants."""
    (block,) = read_tosa(graph).regions[0].blocks
    constants = (Op.CONST, Op.CONST_SHAPE)
    return [operator.op for operator in block.operators if operator.op not in constants]


def largest_step(graph: bytes, model: Callable[..., torch.Tensor], *x: torch.Tensor) -> int:
    """Return the largest difference of the reference model and a quantized one, in integers."""
    (actual,) = reference_model.run(graph, *(each.numpy() for each in x))
    return int(np.abs(actual.astype(int) - model(*x).numpy().astype(int)).max())
