# SPDX-License-Identifier: BSD-3-Clause
"""Modules, parameters, buffers, inputs and methods may have any name, whatever is done to them."""

from __future__ import annotations

import copy

import etx_runtime
import numpy as np
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from etx_exir.lower.decompose import decompose
from etx_exir.lower.lower import run_passes
from etx_exir.passes import PIPELINE
from etx_schema import read_pte
from on_device import assert_same, on_device
from programs import assert_like_eager
from torch import nn
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim
from toy import ToyPartitioner

SPELLED = ("block1-0", "a b", "a-b", "a_b", "文字", "c_a_b", "0")
NAMES = (*SPELLED, "self", "class", "None")
"""torch's own `ExportedProgram.module()` and keyword inputs do not take the last ones."""
FEW = ("a b", "a-b", "class")  # each layer is traced once a branch
X = torch.randn(4, 3)


class Hostile(nn.Module):
    """Layers, batch norms, buffers and parameters under names that are not identifiers."""

    def __init__(self, function=None, names=NAMES):
        super().__init__()
        self.function, self.names = function, names
        for name in names:
            self.add_module(name, nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval())
            self.register_buffer(f"{name} buffer", torch.rand(3))
            self.register_buffer(f"in {name}", torch.rand(3))
            self.register_parameter(f"{name}-weight", nn.Parameter(torch.rand(3, 3)))

    def named(self, x):
        for name in self.names:
            held = self._buffers[f"{name} buffer"]
            x = self._modules[name](x).tanh() * held.exp()
            x = x @ self._parameters[f"{name}-weight"].t()
        return x

    def forward(self, *args, **kwargs):
        return self.function(self, *args, **kwargs) if self.function else self.named(*args)


def branch(self, x):
    return torch.cond(x.sum() > 0, self.named, lambda x: self.named(x) + 1, (x,))


def loop(self, x):
    def body(i, x):
        return i + 1, self.named(x)

    return while_loop(lambda i, x: i < 3, body, (torch.tensor(0), x))[1]


def rows(self, x):
    return map_rows(lambda row: self.named(row[None])[0], x)


def sums(self, x):
    def step(c, row):
        return self.named(c + row), c * row

    return scan(step, x[:1] * 0, x[:, None], dim=0)


def state(self, x):
    for name in NAMES:
        self._buffers[f"in {name}"].add_(x.sum(0))
        x = x + self._buffers[f"in {name}"]
    return self.named(x)


PATHS = {"plain": None, "cond": branch, "while": loop, "map": rows, "scan": sums, "state": state}


def exported(function, inputs=(X,), kwargs=None, names=NAMES, **options):
    module = Hostile(function, names).eval()
    return copy.deepcopy(module), torch.export.export(module, inputs, kwargs, **options)


def agrees(model, eager, *inputs, **kwargs):
    with torch.no_grad():
        expected = eager(*copy.deepcopy(inputs), **copy.deepcopy(kwargs))
    assert_same(model(*on_device(inputs), **on_device(kwargs)), expected)


@pytest.mark.parametrize("path", PATHS)
def test_every_path(path):
    nested = path in ("cond", "while", "map", "scan")
    eager, program = exported(PATHS[path], names=FEW if nested else NAMES)
    manager = to_edge(program)
    agrees(etx_runtime.load(manager.to_executorch().buffer), eager, X)


def test_every_pass():
    eager, program = exported(None, names=SPELLED)
    lowered = decompose(program)
    for item in PIPELINE:
        run_passes(lowered, (item,))
        assert_like_eager(lowered, eager, (X,), tolerance=1e-4)


def test_names_survive():
    _, program = exported(state)
    manager = to_edge(program).to_executorch()
    document = bytes(read_pte(manager.buffer).named_data["etx/debug"].data).decode()
    for name in NAMES:
        assert f'"module":"{name}.0"' in document
    assert set(etx_runtime.load(manager.buffer).method().get_state()) == {f"in {n}" for n in NAMES}


def test_weights_outside(tmp_path):
    eager, program = exported(None)
    manager = to_edge(program).to_executorch(ExecutorchBackendConfig(external_constants=True))
    manager.save(tmp_path / "net.pte")
    manager.write_tensor_data_to_file(tmp_path)
    agrees(etx_runtime.load(tmp_path / "net.pte", data=list(tmp_path.glob("*.ptd"))), eager, X)


@pytest.mark.parametrize("path", ["plain", "cond"])
def test_delegates(path):
    _, program = exported(PATHS[path], names=FEW)
    manager = to_edge_transform_and_lower(program, partitioner=[ToyPartitioner()])
    assert b"ToyBackend" in manager.to_executorch(ExecutorchBackendConfig(target=None)).buffer


def test_sizes():
    eager, program = exported(None, dynamic_shapes={"args": ({0: Dim("n", max=9)},)})
    model = etx_runtime.load(to_edge(program).to_executorch().buffer)
    agrees(model, eager, torch.randn(7, 3))
    with pytest.raises(ValueError, match="at most 9"):
        model(np.zeros((10, 3), np.float32))


def test_inputs():
    given = {name: torch.randn(1, 3) for name in SPELLED if name != "0"}

    def function(self, **given):
        return {name: self.named(value) for name, value in given.items()}

    eager, program = exported(function, (), given, names=FEW)
    model = etx_runtime.load(to_edge(program).to_executorch().buffer)
    agrees(model, eager, **given)
    with pytest.raises(ValueError, match=r"block1-0.*expected float32\[1, 3\]"):
        model(**{**on_device(given), "block1-0": np.zeros(4, np.float32)})


def test_keys_of_inputs():
    given = {name: torch.randn(1, 3) for name in NAMES}
    eager, program = exported(
        lambda self, x: {k: v.exp() * v for k, v in x.items()}, (given,), names=FEW[:1]
    )
    agrees(etx_runtime.load(to_edge(program).to_executorch().buffer), eager, given)


def test_methods():
    eager, program = exported(None, names=NAMES[:1])
    other = exported(branch, names=NAMES[:1])[1]
    manager = to_edge({name: program if i % 2 else other for i, name in enumerate(NAMES)})
    model = etx_runtime.load(manager.to_executorch().buffer)
    assert model.method_names == set(NAMES)
    for name in NAMES[1::2]:
        assert_same(model.call(name, X.numpy()), eager(X).detach())
