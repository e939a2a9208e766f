# SPDX-License-Identifier: BSD-3-Clause
"""Operators of users: out variants found or derived, mutation, fusion by a pass, from C++ too."""

from __future__ import annotations

import json
import os
import subprocess
from functools import partial
from pathlib import Path

import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from etx_exir.passes import NodePass
from etx_exir.target.check import TargetWarning, UnsupportedError
from on_device import assert_same, export, on_device
from torch import nn

HERE = Path(__file__).parent
TORCH = Path(torch.__file__).parent
NAMES = ("twice.out", "pair.out", "scaled_add.out", "accumulate", "step.out")
aten = torch.ops.aten


def built(source, folder, *flags):
    output = folder / f"lib{source}.so"
    text = str(HERE / "custom" / f"{source}.cpp")
    command = [os.environ.get("CXX", "c++"), text, "-shared", "-fPIC", *flags, "-o", str(output)]
    subprocess.run(command, check=True)
    return output


@pytest.fixture(scope="module")
def ops():
    """The operators of the host; no out variant is registered."""
    with torch.library._scoped_library("etx_custom", "DEF") as library:
        for schema, function in {
            "twice(Tensor x) -> Tensor": lambda x: x * 2,
            "pair(Tensor x, int[] factors) -> (Tensor, Tensor)": lambda x, f: (x * f[0], x * f[1]),
            "scaled_add(Tensor x, Tensor y, float scale) -> Tensor": lambda x, y, s: x + s * y,
            "accumulate(Tensor(a!) sum, Tensor x) -> ()": lambda s, x: (s.add_(x), None)[1],
            "step(Tensor(a!) sum, Tensor x) -> Tensor": lambda s, x: s.add_(x) * 10,
        }.items():
            library.define(schema)
            library.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
        yield torch.ops.etx_custom


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """Target `etx` and the kernels of custom/kernels.cpp, which the runtime has loaded."""
    folder = tmp_path_factory.mktemp("kernels")
    include = Path(etx_runtime.__file__).parent / "include"
    flags = ["-std=c++17", "-O1", "-fno-exceptions", "-fno-rtti", f"-I{include}"]
    plugin = built("kernels", folder, *flags)
    etx_runtime.Runtime.get().load_plugin(plugin)
    names = [*(f"etx_custom::{name}" for name in NAMES), "etx_cpp::doubled.out"]
    document = {"name": "mine", "extends": ["etx"], "operators": {name: {} for name in names}}
    path = folder / "mine.json"
    path.write_text(json.dumps(document))
    return str(path)


def check(edge, module, target, *calls):
    manager = edge.to_executorch(ExecutorchBackendConfig(target=target))
    model = etx_runtime.load(manager.buffer)
    for inputs in calls:
        assert_same(model(*on_device(inputs)), module(*inputs))
    return names_of(manager)


def names_of(manager):
    plan = manager.executorch_program.execution_plan[0]
    return {f"{op.name}.{op.overload}".removesuffix(".") for op in plan.operators}


class Functional(nn.Module):
    def forward(self, x):
        ops = torch.ops.etx_custom
        first, second = ops.pair(ops.twice(x), [3, -1])
        return first + 1, ops.twice(second)


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.tensor([1.0, 2]))

    def forward(self, x):
        torch.ops.etx_custom.accumulate(self.sum, x)
        before = self.sum * 1
        return before, torch.ops.etx_custom.step(self.sum, x), self.sum + 0


def calls(count):
    return [(torch.randn(2),) for _ in range(count)]


def test_out_variants_are_derived(ops, target):
    module = Functional()
    edge = to_edge(export(module, *calls(1)))
    names = check(edge, module, target, *calls(2))
    assert {"etx_custom::twice.out", "etx_custom::pair.out"} <= names
    with pytest.warns(TargetWarning) as caught:
        assert names_of(edge.to_executorch()) == names
    (warning,) = caught
    assert "etx_custom::pair.out; to have this checked, lower for a .json" in str(warning.message)
    with pytest.raises(UnsupportedError) as refused:
        edge.to_executorch(ExecutorchBackendConfig(target="executorch"))
    assert len(refused.value.problems) == 3
    assert '"operators": {"etx_custom::twice.out": {}}' in str(refused.value)


def test_operators_that_write_to_their_arguments(ops, target):
    module = Stateful()
    edge = to_edge(export(module, *calls(1)))
    names = check(edge, module, target, *calls(3))
    assert {"etx_custom::accumulate", "etx_custom::step.out"} <= names


class Written(nn.Module):
    def forward(self, x):
        torch.ops.etx_custom.accumulate(x[:1], x[1:])
        return x * 2


def test_a_view_that_is_written_to_is_refused(ops):
    with pytest.raises(Exception, match="'sum' is a view of the tensor that is written to"):
        to_edge(export(Written(), *calls(1))).to_executorch()


class FuseScaledAdd(NodePass):
    """``x + y * s`` -> ``scaled_add(x, y, s)``."""

    targets = (aten.add.Tensor,)

    def rewrite(self, node, graph):
        x, y = node.args
        if y.target != aten.mul.Scalar or len(y.users) > 1:
            return None
        fused = torch.ops.etx_custom.scaled_add.default
        return graph.call_function(fused, (x, y.args[0], float(y.args[1])))


class Sum(nn.Module):
    def forward(self, x):
        return (x.sin() + x.cos() * 3).exp()


@pytest.mark.parametrize("stage", ["edge", "transform", "config"])
def test_a_pass_fuses_a_pattern_at_each_stage(stage, ops, target):
    module, program = Sum(), export(Sum(), *calls(1))
    config = {}
    if stage == "edge":
        edge = to_edge_transform_and_lower(program, transform_passes=[FuseScaledAdd()])
    elif stage == "transform":
        edge = to_edge(program).transform([FuseScaledAdd()])
    else:
        edge, config = to_edge(program), {"passes": [FuseScaledAdd()]}
    manager = edge.to_executorch(ExecutorchBackendConfig(target=target, **config))
    plan = manager.executorch_program.execution_plan[0]
    assert [op.name for op in plan.operators].count("etx_custom::scaled_add") == 1
    assert not any(op.name in ("aten::add", "aten::mul") for op in plan.operators)
    model = etx_runtime.load(manager.buffer)
    for inputs in calls(2):
        assert_same(model(*on_device(inputs)), module(*inputs))


class Doubled(nn.Module):
    def forward(self, x):
        return torch.ops.etx_cpp.doubled(x) + torch.ops.etx_cpp.doubled(x, 0.5)


def test_operators_of_a_torch_library(tmp_path, target):
    include = [f"-I{TORCH}/include", f"-I{TORCH}/include/torch/csrc/api/include"]
    linked = [f"-L{TORCH}/lib", "-lc10", "-ltorch_cpu"]
    library = built("operators", tmp_path, "-std=c++20", "-O0", "-w", *include, *linked)
    torch.ops.load_library(str(library))
    module = Doubled()
    names = check(to_edge(export(module, *calls(1))), module, target, *calls(2))
    assert "etx_cpp::doubled.out" in names


def test_kernels_in_python(ops, target):
    class Net(nn.Module):
        def forward(self, x):
            low, high = ops.pair(ops.twice(x), [3, 5])
            return ops.scaled_add(low, high, 0.5)

    kernels = {
        "etx_custom::twice.out": lambda x, out: x * 2,
        "etx_custom::pair.out": lambda x, factors, a, b: tuple(x * f for f in factors),
        "etx_custom::scaled_add.out": lambda x, y, scale, out: x + scale * y,
    }
    calls = []
    for name, kernel in kernels.items():
        run = partial(lambda name, kernel, *args: (calls.append(name), kernel(*args))[1], name)
        etx_runtime.register_kernel(name, partial(run, kernel))
    try:
        x = torch.arange(6.0).reshape(2, 3)
        check(to_edge(export(Net(), (x,))), Net(), target, (x,), (x + 1,))
    finally:
        for name in kernels:
            assert etx_runtime.unregister(name)
    assert calls == [*kernels] * 2
