# SPDX-License-Identifier: BSD-3-Clause
"""What the emitter writes: operators, values, constants, inputs, outputs, containers."""

from __future__ import annotations

import json

import pytest
import torch
from etx_exir import ExecutorchBackendConfig
from etx_exir.emit import EmitError, emit
from etx_exir.plan import MemoryPlanningPass
from etx_schema import Int, IntList, OptionalTensorList, Tensor, serialize_pte
from interpreter import Method
from running import assert_same, edge, emitted, operators, plan_of, reread, run
from torch import nn
from torch.nn import functional


class Fn(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def test_linear_and_relu():
    module = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    result = run(module, (torch.randn(3, 8),), (torch.randn(3, 8),))
    assert operators(result.pte) == ["aten::linear.out", "aten::relu.out", "aten::linear.out"]


def test_convolutional_network():
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(8, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)]
    run(nn.Sequential(*layers), (torch.randn(1, 3, 16, 16),), (torch.randn(1, 3, 16, 16),))


def test_arguments_are_spelled_out_and_returns_repeated():
    result = run(Fn(lambda x, y: torch.add(x, y, alpha=2)), (torch.randn(2, 3), torch.randn(2, 3)))
    plan = plan_of(result.pte)
    (call,) = [i.instr_args for i in plan.chains[0].instructions]
    x, y, alpha, out, returned = call.args
    assert (x, y) == tuple(plan.inputs)
    assert plan.values[alpha].val == Int(2)
    assert out == returned == plan.outputs[0]


def test_several_returns_are_a_list():
    result = run(Fn(lambda x: torch.topk(x, 2)), (torch.randn(3, 5),))
    plan = plan_of(result.pte)
    args = plan.chains[0].instructions[0].instr_args.args
    assert operators(result.pte) == ["aten::topk.values"]
    assert plan.values[args[-1]].val.items == list(args[-3:-1]) == plan.outputs


def test_lists_are_boxed():
    result = run(Fn(lambda x: x.permute(2, 0, 1)), (torch.randn(2, 3, 4),))
    plan = plan_of(result.pte)
    listed = plan.values[plan.chains[0].instructions[0].instr_args.args[1]].val
    assert isinstance(listed, IntList)
    assert [plan.values[i].val.int_val for i in listed.items] == [2, 0, 1]


def test_optional_tensor_lists_have_holes():
    index = torch.tensor([1, 0])
    result = run(Fn(lambda x, i: x[:, i]), (torch.randn(2, 3), index))
    plan = plan_of(result.pte)
    lists = [v.val for v in plan.values if isinstance(v.val, OptionalTensorList)]
    assert [item for each in lists for item in each.items] == [-1, plan.inputs[1]]


def test_the_pieces_of_a_split():
    run(Fn(lambda x: torch.split(x, [1, 3], dim=1)), (torch.randn(2, 4),))
    run(Fn(lambda x: [a + 1 for a in x.unbind(1)]), (torch.randn(2, 4),))


def test_enumerations_have_atens_numbers():
    result = run(Fn(lambda x: torch.softmax(x, 0, dtype=torch.float64)), (torch.randn(4),))
    types = [v.val.scalar_type for v in plan_of(result.pte).values if isinstance(v.val, Tensor)]
    assert 7 in [int(t) for t in types]


def test_equal_constants_are_stored_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(6, 4)
            self.head = nn.Linear(4, 6, bias=False)
            self.head.weight = self.embed.weight
            self.copy = nn.Parameter(self.embed.weight.detach().clone())

        def forward(self, i):
            return self.head(self.embed(i)) @ self.copy

    module = Tied()
    program = edge(module, (torch.tensor([1, 2]),))
    pte = emit({"one": program, "two": program})
    assert len(pte.constants) == 1
    method = Method(reread(pte), "two")
    assert_same(method.execute(torch.tensor([3])), [module(torch.tensor([3]))])


def test_constants_are_not_copied():
    module = nn.Linear(64, 64, bias=False)
    program = edge(module, (torch.randn(1, 64),))
    (blob,) = emit({"forward": program}).constants
    (stored,) = program.state_dict.values()
    with torch.no_grad():
        stored.fill_(3.0)
    assert torch.frombuffer(bytearray(blob), dtype=torch.float32).eq(3.0).all()


def test_inputs_and_constants_as_outputs():
    class Passed(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(2, 3))

        def forward(self, x):
            return x, self.weight, x.view(-1), x + 1, None, 5

    run(Passed(), (torch.randn(2, 3),))


def test_scalars_as_inputs():
    run(Fn(lambda x, n, f: x * n + f), (torch.randn(3), 3, 2.5))


def test_static_views_take_no_step():
    result = run(Fn(lambda x: (x.view(4, 4).unsqueeze(0) + 1).squeeze(0)), (torch.randn(2, 8),))
    assert operators(result.pte) == ["aten::add.Scalar_out"]


def test_rows_are_views_where_aligned():
    result = run(Fn(lambda x: x[1] + x[2:].sum(0)), (torch.randn(4, 4),))
    assert "aten::select_copy.int_out" not in operators(result.pte)
    result = run(Fn(lambda x: x[1] + 1), (torch.randn(4, 3),))
    assert operators(result.pte)[0] == "aten::select_copy.int_out"


def test_results_take_over_their_argument():
    result = run(Fn(lambda x, y: torch.relu((x + y) * 2).tanh()), (torch.ones(64), torch.ones(64)))
    assert plan_of(result.pte).non_const_buffer_sizes == [0, 512]


def test_memory_of_the_caller():
    options = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    module = Fn(lambda x: (torch.relu(x.view(-1)), x.view(2, 8) * 2, x))
    program = edge(module, (torch.randn(4, 4),))
    result = emitted(program, options)
    plan = plan_of(result.pte)
    for index in (*plan.inputs, *plan.outputs):
        assert plan.values[index].val.allocation_info is None
    assert len({*plan.inputs, *plan.outputs}) == 4
    x = torch.randn(4, 4)
    assert_same(Method(result.pte).execute(x), list(module(x)))


def test_methods_are_sorted_and_constant_ones_follow():
    program = edge(nn.ReLU(), (torch.randn(2),))
    constants = {"version": 3, "a": ["x", 1.5, True, None], "t": torch.arange(3)}
    pte = reread(emit({"z": program, "b": program}, None, constants))
    assert [p.name for p in pte.program.execution_plan] == ["b", "z", "a", "t", "version"]
    assert Method(pte, "a").execute() == ["x", 1.5, True, None]
    assert Method(pte, "version").execute() == [3]
    assert Method(pte, "t").execute()[0].tolist() == [0, 1, 2]
    assert plan_of(pte, "a").non_const_buffer_sizes == [0]
    with pytest.raises(EmitError, match="both computed and constant: z"):
        emit({"z": program}, None, {"z": 1})


def test_bytes_are_reproducible():
    module = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    files = {serialize_pte(emit({"forward": edge(module, (torch.ones(1, 4),))})) for _ in range(2)}
    assert len(files) == 1


def test_tensors_without_elements():
    run(Fn(lambda x: torch.cat([x, x[:0]])), (torch.randn(3, 2),))


def test_debug_rows_are_parallel_to_the_instructions():
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    program = edge(module, (torch.ones(1, 4),))
    rows = json.loads(bytes(emit({"forward": program}).named_data["etx/debug"].data))
    first, second = rows["forward"]["instructions"]
    assert first["op"] == "aten.linear.default"
    assert first["module"] == "0"
    assert second["module"] == "1"
    assert "/" not in first["source"]
    assert rows["forward"]["constants"] == {"1": "0.weight", "2": "0.bias"}
    pte = emit({"forward": program}, ExecutorchBackendConfig(emit_debug=False))
    assert "etx/debug" not in pte.named_data


def test_operators_of_custom_libraries():
    library = torch.library.Library("etx_test_emit", "FRAGMENT")
    library.define("double(Tensor x, float by=2.0) -> Tensor")
    library.define("double.out(Tensor x, float by=2.0, *, Tensor(a!) out) -> Tensor(a!)")
    library.impl("double", lambda x, by=2.0: x * by, "CompositeExplicitAutograd")
    library.impl("double.out", lambda x, by=2.0, *, out: out.copy_(x * by), "CPU")
    call = torch.ops.etx_test_emit.double
    result = run(Fn(lambda x: call(x) + functional.relu(call(x, 3.0))), (torch.randn(3),))
    assert operators(result.pte).count("etx_test_emit::double.out") == 2
