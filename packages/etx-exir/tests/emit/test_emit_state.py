# SPDX-License-Identifier: BSD-3-Clause
"""Mutable buffers: initial values, write-back in place or by copy, sharing, external data."""

from __future__ import annotations

import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.emit import emit, emit_all
from etx_exir.plan import MemoryPlanningPass
from etx_schema import Tensor, read_ptd, serialize_ptd
from interpreter import Method
from running import assert_same, edge, operators, plan_of, reread, run
from torch import nn


class Stateful(nn.Module):
    def __init__(self, **buffers):
        super().__init__()
        for name, value in buffers.items():
            self.register_buffer(name, torch.as_tensor(value))


class Counter(Stateful):
    def __init__(self):
        super().__init__(n=[5.0, 6.0])

    def forward(self, x):
        self.n += 1
        return x + self.n


def state_of(pte, name="forward"):
    return {
        v.val.extra_tensor_info.fully_qualified_name: v.val
        for v in plan_of(pte, name).values
        if isinstance(v.val, Tensor) and v.val.extra_tensor_info is not None
    }


def test_initial_values_are_kept_and_updated_in_place():
    calls = [(torch.randn(2),) for _ in range(3)]
    pte = run(Counter(), *calls).pte
    assert "aten::copy_" not in operators(pte)
    buffer = state_of(pte)["n"]
    assert buffer.data_buffer_idx == 1
    assert buffer.allocation_info is not None
    assert bytes(pte.mutable_data[0]) == torch.tensor([5.0, 6.0]).numpy().tobytes()


class Cache(Stateful):
    def __init__(self):
        super().__init__(cache=torch.zeros(8, 3), position=torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.cache.index_put_((self.position,), x)
        self.position += 1
        return self.cache * 2


def test_a_cache_is_scattered_into():
    pte = run(Cache(), *[(torch.randn(1, 3),) for _ in range(4)]).pte
    names = operators(pte)
    assert "aten::index_put_" in names
    assert "aten::copy_" not in names


class Swap(Stateful):
    def __init__(self):
        super().__init__(a=[5.0, 6.0], b=[1.0, 2.0])

    def forward(self, x):
        old = self.a.clone()
        self.a.copy_(self.b)
        self.b.copy_(old)
        return self.a + x


class Old(Stateful):
    def __init__(self):
        super().__init__(a=[5.0, 6.0])

    def forward(self, x):
        old = self.a.view(2, 1).clone()
        self.a.mul_(x)
        return old, old + self.a


class Given(Stateful):
    def __init__(self):
        super().__init__(a=[5.0, 6.0])

    def forward(self, x):
        before = self.a * 1
        self.a.copy_(x)
        return before, x


def test_buffers_that_swap():
    run(Swap(), *[(torch.randn(2),) for _ in range(3)])


def test_old_values_as_outputs():
    run(Old(), *[(torch.randn(2),) for _ in range(3)])


def test_inputs_as_new_values():
    pte = run(Given(), *[(torch.randn(2),) for _ in range(3)]).pte
    assert operators(pte).count("aten::copy_") == 1


def test_methods_share_state():
    program = edge(Counter(), (torch.zeros(2),))
    other = edge(Cache(), (torch.zeros(1, 3),))
    planning = MemoryPlanningPass(share_mutable_buffers=True)
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    pte = reread(emit({"a": program, "b": program, "c": other}, config))
    (first,), (second,) = state_of(pte, "a").values(), state_of(pte, "b").values()
    assert first.allocation_info == second.allocation_info
    assert first.allocation_info.memory_id == 2
    taken = {v.allocation_info.memory_offset_low for v in state_of(pte, "c").values()}
    assert first.allocation_info.memory_offset_low not in taken
    assert {plan_of(pte, name).non_const_buffer_sizes[2] for name in "abc"} == {16 + 96 + 16}
    a, b = Method(pte, "a"), Method(pte, "b")
    b.arenas[2].copy_(a.arenas[2])
    for value in b.values:
        if getattr(value, "memory", None) is b.arenas[2]:
            value.memory = a.arenas[2]
    assert a.execute(torch.zeros(2))[0].tolist() == [6.0, 7.0]
    assert b.execute(torch.zeros(2))[0].tolist() == [7.0, 8.0]


class Reader(Stateful):
    def __init__(self):
        super().__init__(n=[5.0, 6.0])

    def forward(self, x):
        return x * (self.n * 2)


def test_what_one_method_changes_is_no_constant_in_another():
    exported = {
        name: torch.export.export(module, (torch.ones(2),))
        for name, module in (("count", Counter()), ("read", Reader()))
    }
    edge = to_edge(exported)
    sharing = MemoryPlanningPass(share_mutable_buffers=True)
    pte = reread(edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=sharing)).pte_file)
    (written,), (read,) = state_of(pte, "count").values(), state_of(pte, "read").values()
    assert written.allocation_info == read.allocation_info
    assert operators(pte, "read").count("aten::mul.Scalar_out") == 1
    alone = edge.to_executorch().pte_file
    assert state_of(alone, "read") == {}
    assert_same(Method(alone, "read").execute(torch.ones(2)), [torch.tensor([10.0, 12.0])])


def test_weights_outside_of_the_file():
    module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    program = edge(module, (torch.randn(1, 3),))

    def tag(node):
        return "first" if "0" in node.name else None

    config = ExecutorchBackendConfig(external_constants=tag)
    result = emit_all({"forward": program}, config)
    assert len(result.pte.constants) == 2
    (name,) = result.external
    assert name == "first"
    stored = read_ptd(serialize_ptd(result.external["first"])).named_data
    assert set(stored) == {"0.weight", "0.bias"}
    assert list(stored["0.weight"].layout.sizes) == [4, 3]
    assert bytes(stored["0.bias"].data) == module[0].bias.detach().numpy().tobytes()
    weight = state_of(result.pte)["0.weight"]
    assert weight.extra_tensor_info.location == 1
    config = ExecutorchBackendConfig(external_constants=True)
    assert set(emit_all({"forward": program}, config).external) == {"_default_external_constant"}


def test_names_of_buffers_can_be_left_out():
    config = ExecutorchBackendConfig(emit_mutable_buffer_names=False)
    pte = emit({"forward": edge(Counter(), (torch.zeros(2),))}, config)
    assert state_of(pte) == {}
    assert_same(Method(pte).execute(torch.zeros(2)), [torch.tensor([6.0, 7.0])])


def test_the_manager_writes_the_files(tmp_path):
    module = nn.Linear(3, 4)
    manager = to_edge(torch.export.export(module, (torch.randn(1, 3),)))
    done = manager.to_executorch(ExecutorchBackendConfig(external_constants=True))
    done.write_tensor_data_to_file(tmp_path)
    done.save(tmp_path / "model.pte")
    assert {p.name for p in tmp_path.iterdir()} == {"model.pte", "_default_external_constant.ptd"}
    assert "largest live set" in str(done.memory_reports["forward"])


def test_stacks_are_stored_on_demand():
    program = edge(Counter(), (torch.zeros(2),))
    assert not plan_of(emit({"forward": program})).chains[0].stacktrace
    pte = reread(emit({"forward": program}, ExecutorchBackendConfig(emit_stacktrace=True)))
    (chain,) = plan_of(pte).chains
    assert len(chain.stacktrace) == len(chain.instructions)
    frame = chain.stacktrace[0].items[-1]
    assert frame.filename.endswith("test_emit_state.py")
    assert (frame.name, frame.context) == ("forward", "self.n += 1")
