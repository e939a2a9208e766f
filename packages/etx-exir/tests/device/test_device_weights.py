# SPDX-License-Identifier: BSD-3-Clause
"""Weights beside the file and mutable state, on the runtime."""

from __future__ import annotations

import etx_runtime
import numpy as np
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.plan import MemoryPlanningPass
from etx_schema import read_ptd
from on_device import assert_same, export
from torch import nn

DEFAULT = "_default_external_constant"


class Net(nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.second = nn.Linear(4, 3), nn.Linear(3, 4)
        self.norm, self.last = nn.LayerNorm(4), nn.LayerNorm(4)
        self.scale = nn.Parameter(torch.tensor(1.0 + seed))

    def forward(self, x):
        return self.last(self.norm(self.second(torch.relu(self.first(x))))) * self.scale


X = torch.randn(2, 4)


def written(modules, folder, **options):
    """Write model.pte and its .ptd files to `folder`; return the manager."""
    modules = {"forward": modules} if isinstance(modules, nn.Module) else modules
    programs = {name: export(module, (X,)) for name, module in modules.items()}
    manager = to_edge(programs).to_executorch(ExecutorchBackendConfig(**options))
    folder.mkdir(exist_ok=True)
    manager.save(folder / "model.pte")
    manager.write_tensor_data_to_file(folder)
    return manager


def loaded(pte, weights):
    return etx_runtime.load(pte / "model.pte", data_paths=sorted(weights.glob("*.ptd")))


def test_weights_are_swapped_at_load(tmp_path):
    here, there = tmp_path / "fresh", tmp_path / "trained"
    trained = Net(1)
    with torch.no_grad():
        for parameter in trained.last.parameters():
            parameter.add_(torch.randn(4))
    first = written(Net(), here, external_constants=True)
    second = written(trained, there, external_constants=True)
    assert first.buffer == second.buffer
    assert not first.pte_file.constants
    assert_same(loaded(here, here)(X.numpy()), Net()(X))
    assert_same(loaded(here, there)(X.numpy()), trained(X))
    with pytest.raises(etx_runtime.LoadError, match=r"\.ptd file that was not given"):
        etx_runtime.load(here / "model.pte")(X.numpy())


def test_several_files_by_tag(tmp_path):
    def tag(node):
        name = str(node.name)
        return "norms" if "norm" in name else "weights" if "weight" in name else None

    manager = written(Net(), tmp_path, external_constants=tag)
    assert {p.name for p in tmp_path.iterdir()} == {"model.pte", "norms.ptd", "weights.ptd"}
    stored = set(read_ptd((tmp_path / "weights.ptd").read_bytes()).named_data)
    assert stored == {"first.weight", "second.weight", "last.weight"}
    assert len(manager.pte_file.constants) == 4
    assert_same(loaded(tmp_path, tmp_path)(X.numpy()), Net()(X))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.other = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.other.weight = self.net.weight

    def forward(self, x):
        return self.other(torch.relu(self.net(x)))


def test_methods_and_tied_layers_share_a_weight_outside(tmp_path):
    tied = Tied()
    methods = {"forward": tied, "relu": nn.Sequential(tied, nn.ReLU())}
    written(methods, tmp_path, external_constants=True)
    assert (tmp_path / f"{DEFAULT}.ptd").stat().st_size < 1000
    model = loaded(tmp_path, tmp_path)
    for name, module in methods.items():
        assert_same(model.call(name, X.numpy()), module(X))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.tensor([5.0, 6, 7, 8]))
        self.register_buffer("seen", torch.tensor(3))
        self.gain = nn.Parameter(torch.tensor([1.0, 2, 3, 4]))

    def forward(self, x):
        self.n += x.sum(0)
        self.seen += 1
        with torch.no_grad():
            self.gain.mul_(2)
        return x + self.n * self.gain, self.seen + 0


@pytest.mark.parametrize("outside", ["", "external_constants", "external_mutable_weights"])
def test_initial_values_of_buffers_and_parameters(outside, tmp_path):
    options = {outside: True} if outside else {}
    manager = written(Counter(), tmp_path, **options)
    module, model = Counter(), loaded(tmp_path, tmp_path)
    stored = tmp_path / f"{DEFAULT}.ptd"
    assert stored.exists() == (outside == "external_mutable_weights")
    assert bool(manager.pte_file.mutable_data) != stored.exists()
    for _ in range(3):
        assert_same(model(X.numpy()), module(X))
    method = model.method()
    for name in ("n", "seen", "gain"):
        assert_same(np.asarray(method.get_attribute(name)), getattr(module, name))
    method.reset_state()
    assert_same(model(X.numpy()), Counter()(X))


def test_names_of_state_can_be_left_out(tmp_path):
    written(Counter(), tmp_path, emit_mutable_buffer_names=False)
    model = loaded(tmp_path, tmp_path)
    assert_same(model(X.numpy()), Counter()(X))
    with pytest.raises(etx_runtime.RuntimeFailure):
        model.method().get_attribute("n")


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", Counter().n)

    def forward(self, x):
        return x + self.n * 2


def test_methods_have_their_own_state(tmp_path):
    counter = Counter()
    written({"one": counter, "two": counter}, tmp_path)
    model, first, second = loaded(tmp_path, tmp_path), Counter(), Counter()
    for name, module in (("one", first), ("one", first), ("two", second), ("one", first)):
        assert_same(model.call(name, X.numpy()), module(X))


def test_methods_share_state(tmp_path):
    counter = Counter()
    sharing = MemoryPlanningPass(share_mutable_buffers=True)
    methods = {"one": counter, "read": Reader(), "two": counter}
    written(methods, tmp_path, memory_planning_pass=sharing)
    model, one = loaded(tmp_path, tmp_path), Counter()
    for name in ("one", "two", "read", "two", "read", "one"):
        expected = X + one.n * 2 if name == "read" else one(X)
        assert_same(model.call(name, X.numpy()), expected)
