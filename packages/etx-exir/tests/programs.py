# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of passes share: programs from modules, counts of operators, eager's answer."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.provenance import DECLINED
from etx_exir.lower.decompose import decompose
from etx_exir.lower.lower import fit, lower, run_passes
from etx_exir.lower.verify import Dialect, verify
from etx_exir.passes import PIPELINE, CopyViews, RemoveAsserts
from etx_exir.passes.base import Pass
from etx_exir.target import load_target
from torch import nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

RELU_SOURCE = """
import torch

class Net(torch.nn.Module):
    example_inputs = (torch.ones(2),)

    def forward(self, x):
        return x.relu()
"""


class Calls(nn.Module):
    """A function as a module; `held` become its buffers."""

    def __init__(self, function: Any, **held: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        for name, tensor in held.items():
            self.register_buffer(name, tensor)

    def forward(self, *args: Any) -> Any:
        return self.function(self, *args) if self._buffers else self.function(*args)


class Masked(nn.Module):
    """Two equal buffers, saved with the weights or not."""

    def __init__(self, persistent: bool) -> None:
        super().__init__()
        for name in ("a", "b"):
            self.register_buffer(name, torch.arange(8.0), persistent=persistent)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.a + self.b


class Several(nn.ModuleList):
    """Each module on an input of its own."""

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return [layer(x) for layer, x in zip(self, inputs, strict=True)]


def settled(norm: Any) -> Any:
    """Return a batch norm as training leaves it."""
    norm.running_mean.uniform_(-1, 1)
    norm.running_var.uniform_(0.5, 2)
    nn.init.uniform_(norm.weight, 0.5, 2)
    nn.init.uniform_(norm.bias)
    return norm


def core(module: nn.Module, inputs: tuple[Any, ...], dynamic_shapes: Any = None) -> ExportedProgram:
    """Return the program in Core ATen with copying views: what most passes start from."""
    exported = torch.export.export(module.eval(), inputs, dynamic_shapes=dynamic_shapes)
    program = decompose(exported)
    run_passes(program, (RemoveAsserts(), CopyViews()))
    return program


def edge(module: nn.Module, inputs: tuple[Any, ...], dynamic_shapes: Any = None) -> ExportedProgram:
    """Return the program after the whole pipeline, verified."""
    exported = torch.export.export(module.eval(), inputs, dynamic_shapes=dynamic_shapes)
    program = lower(exported)
    verify(program, Dialect.EDGE)
    return program


def fitted(module: nn.Module, inputs: tuple[Any, ...]) -> ExportedProgram:
    """Return the Edge program as target `executorch` wants it, compared with eager."""
    program = fit(edge(module, inputs), load_target("executorch"))
    assert_like_eager(program, module, inputs)
    return program


def apply(item: Pass, program: ExportedProgram, times: int = 1) -> None:
    """Run a pass that must change the program, then once more, when it must not."""
    for _ in range(times):
        assert item.run(program)
    assert not item.run(program)
    verify(program, Dialect.ATEN)


def refusals(item: Pass, program: ExportedProgram) -> set[str]:
    """Run a pass that must not change the program; return why."""
    assert not item.run(program)
    return {
        node.meta[DECLINED][item.name]
        for module in graph_modules(program.graph_module)
        for node in module.graph.nodes
        if item.name in node.meta.get(DECLINED, ())
    }


def counts(program: ExportedProgram) -> dict[str, int]:
    """Count operators by name, nested graphs included; reading a result does not count."""
    names = Counter(
        str(node.target)
        for module in graph_modules(program.graph_module)
        for node in module.graph.nodes
        if node.op == "call_function" and "getitem" not in str(node.target)
    )
    return dict(names)


def assert_like_eager(
    program: ExportedProgram, module: nn.Module, *calls: tuple[Any, ...], tolerance: float = 1e-5
) -> None:
    """Call both on the same inputs, one call after the other, state carried over."""
    ours, eager = program.module(check_guards=False), copy.deepcopy(module)
    with torch.no_grad():
        for inputs in calls:
            expected = pytree.tree_leaves(eager(*copy.deepcopy(inputs)))
            found = pytree.tree_leaves(ours(*copy.deepcopy(inputs)))
            assert len(found) == len(expected)
            for a, b in zip(found, expected, strict=True):
                torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


@contextmanager
def without_onednn() -> Iterator[None]:
    """Let eager round as its own loops do: oneDNN's take some layouts and not others."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


def assert_bits(program: ExportedProgram, module: nn.Module, inputs: tuple[Any, ...]) -> None:
    """Assert that dtypes, shapes and bits are eager's; all NaN are one."""
    with without_onednn():
        found = pytree.tree_leaves(program.module(check_guards=False)(*copy.deepcopy(inputs)))
        expected = pytree.tree_leaves(copy.deepcopy(module)(*copy.deepcopy(inputs)))
    values = [node.meta["val"] for node in program.graph.output_node().all_input_nodes]
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(torch.signbit(a[a == 0]), torch.signbit(b[b == 0]))
    if len(values) == len(found):
        assert [v.dtype for v in values] == [b.dtype for b in expected]


__all__ = [
    "PIPELINE",
    "Calls",
    "Several",
    "apply",
    "assert_bits",
    "assert_like_eager",
    "core",
    "counts",
    "edge",
    "fitted",
    "refusals",
    "settled",
]
