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
from torch.fx import Interpreter


def lower(model: nn.Module, *inputs: torch.Tensor, partitioner: Any = None) -> ExportedProgram:
    """Return the Edge program of a model after delegation."""
    return lower_exported(torch.export.export(model, inputs), partitioner)


def lower_exported(program: ExportedProgram, partitioner: Any = None) -> ExportedProgram:
    """Return the Edge program of an exported one after delegation."""
    chosen = partitioner or TOSAPartitioner()
    return to_edge_transform_and_lower(program, partitioner=[chosen]).exported_program("forward")


def delegates(program: ExportedProgram) -> list[LoweredBackendModule]:
    """Return the delegates of a program."""
    calls = [n for n in program.graph.nodes if n.target is CALL_DELEGATE]
    return [getattr(program.graph_module, str(n.args[0].target)) for n in calls]


def on_reference_model(graph: bytes, *inputs: torch.Tensor) -> list[torch.Tensor]:
    """Run a TOSA file on tensors in the order of its inputs."""
    made = reference_model.run(graph, *map(_array, inputs))
    return [_tensor(np.array(each)) for each in made]


def _array(tensor: torch.Tensor) -> np.ndarray:
    held = tensor.contiguous()
    return (held.view(torch.int16) if held.dtype == torch.bfloat16 else held).numpy()


def _tensor(array: np.ndarray) -> torch.Tensor:
    if array.dtype.kind != "V":
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


class _Delegates(Interpreter):
    """Runs delegates on TOSA's reference model, all else in torch."""

    def __init__(self, program: ExportedProgram, graph_of: Callable[[Any], bytes]) -> None:
        super().__init__(program.graph_module)
        self.graph_of = graph_of

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Run a node."""
        if target is not CALL_DELEGATE:
            return super().call_function(target, args, kwargs)
        lowered, *inputs = args
        return on_reference_model(self.graph_of(lowered), *inputs)


def interpreted(
    program: ExportedProgram,
    *inputs: torch.Tensor,
    graph_of: Callable[[Any], bytes] = lambda lowered: lowered.processed_bytes,
) -> list[torch.Tensor]:
    """Return what an Edge program makes whose delegates run on the reference model."""
    held = {
        spec.arg.name: program.state_dict.get(spec.target, program.constants.get(spec.target))
        for spec in program.graph_signature.input_specs
        if spec.target is not None
    }
    given = iter(inputs)
    nodes = [n for n in program.graph.nodes if n.op == "placeholder"]
    args = [held[n.name] if n.name in held else next(given) for n in nodes]
    with torch.no_grad():
        return list(_Delegates(program, graph_of).run(*args))


def operators(graph: bytes) -> list[Op]:
    """Return the operators of a TOSA file that are not constants."""
    (block,) = read_tosa(graph).regions[0].blocks
    constants = (Op.CONST, Op.CONST_SHAPE)
    return [operator.op for operator in block.operators if operator.op not in constants]


def largest_step(graph: bytes, model: Callable[..., torch.Tensor], *x: torch.Tensor) -> int:
    """Return the largest difference of the reference model and a quantized one, in integers."""
    (actual,) = reference_model.run(graph, *(each.numpy() for each in x))
    return int(np.abs(actual.astype(int) - model(*x).numpy().astype(int)).max())
