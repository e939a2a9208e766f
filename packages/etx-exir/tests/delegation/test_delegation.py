# SPDX-License-Identifier: BSD-3-Clause
"""Delegates in a file: just their blobs, run again, give eager's numbers."""

from __future__ import annotations

import copy

import pytest
import torch
from etx_exir import (
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    ExecutorchBackendConfig,
    NamedDataStore,
    Partitioner,
    PartitionResult,
    PreprocessResult,
    to_backend,
    to_edge,
    to_edge_transform_and_lower,
)
from etx_exir.errors import BackendError
from etx_exir.partitioners import (
    AllNodePartitioner,
    OperatorSupportPartitioner,
    tag_constant_data,
    tag_mutated_buffer,
)
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from etx_schema import EtxError, read_ptd, read_pte
from interpreter import Method
from programs import Calls, counts
from running import assert_same, plan_of, reread
from torch import nn
from torch.utils import _pytree as pytree
from toy import SavedBackend, ToyPartitioner

aten = torch.ops.aten
cond, while_loop = torch.ops.higher_order.cond, torch.ops.higher_order.while_loop
SAVED = DelegationSpec(SavedBackend.__name__)
CALL = "executorch_call_delegate"


ADD, MUL = (aten.add.Tensor, aten.add.Scalar), (aten.mul.Tensor, aten.mul.Scalar)


def takes(*operators, spec=SAVED, **options):
    return OperatorSupportPartitioner(spec, operators, **options)


def check(module, partitioners, *calls, dynamic_shapes=None, backends=None, methods=None):
    """Lower, write, read and run again; return the Edge program and the method that ran."""
    eager = copy.deepcopy(module).eval()
    exported = torch.export.export(module.eval(), calls[0], dynamic_shapes=dynamic_shapes)
    manager = to_edge_transform_and_lower(exported, partitioner=partitioners)
    pte = manager.to_executorch(ExecutorchBackendConfig(target=None)).pte_file
    content = reread(pte)
    method = Method(content)
    for inputs in calls:
        found = method.execute(*pytree.tree_leaves(inputs))
        assert_same(found, pytree.tree_leaves(eager(*inputs)))
    if backends is not None:
        assert [d.id for d in plan_of(content).delegates] == backends
    return manager.exported_program(), method


def test_several_backends_in_one_program():
    module = Calls(lambda x, y: ((x + y) * y).sin() + x.cos())
    x, y = torch.randn(3), torch.randn(3)
    sines = takes(aten.sin.default, aten.cos.default)
    program, _ = check(
        module,
        [ToyPartitioner(), sines],
        (x, y),
        (y, x),
        backends=["ToyBackend", "SavedBackend", "SavedBackend", "ToyBackend"],
    )
    assert counts(program) == {CALL: 4}


class Halves(Partitioner):
    """Additions with one compile spec, products with another."""

    def partition(self, exported_program):
        tags = {}
        for node in exported_program.graph.nodes:
            if node.target in (aten.add.Tensor, aten.mul.Tensor):
                scale = b"2" if node.target == aten.add.Tensor else b"0.5"
                node.meta["delegation_tag"] = node.name
                tags[node.name] = DelegationSpec("ToyBackend", [CompileSpec("scale", scale)])
        return PartitionResult(exported_program, tags)


def test_one_backend_twice_with_different_specs():
    x, y = torch.randn(3), torch.randn(3)
    program = torch.export.export(Calls(lambda x, y: (x + y) * y), (x, y))
    edge = to_edge(program).to_backend(Halves())
    pte = reread(edge.to_executorch(ExecutorchBackendConfig(target=None)).pte_file)
    specs = [{s.key: bytes(s.value) for s in d.compile_specs} for d in plan_of(pte).delegates]
    assert specs == [{"scale": b"2"}, {"scale": b"0.5"}]
    assert_same(Method(pte).execute(x, y), [(x + y) * 2 * y * 0.5])


def test_a_module_lowered_by_id_is_one_delegate_of_a_bigger_one():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x, more):
            return {"y": self.linear(x).relu() + more["z"]}

    class Outer(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.scale = inner, nn.Parameter(torch.tensor(3.0))

        def forward(self, x):
            return self.inner(x * self.scale, {"z": x})["y"].sin()

    inner, x = Inner().eval(), torch.randn(2, 4)
    edge = to_edge(torch.export.export(inner, (x, {"z": x.clone()}))).exported_program()
    lowered = to_backend("SavedBackend", edge, [CompileSpec("key", b"value")])
    assert_same([lowered(x, {"z": x})["y"]], [inner(x, {"z": x})["y"]])
    outer = Outer(inner)
    program = torch.export.export(Outer(lowered), (x,))
    assert sorted(program.state_dict) == ["scale"]
    pte = to_edge(program).to_executorch(ExecutorchBackendConfig(target=None)).pte_file
    method = Method(reread(pte))
    assert_same(method.execute(x), [outer(x)])
    assert method.executed == ["aten::mul.out", "SavedBackend", "aten::sin.out"]


def test_a_lowered_module_writes_itself_as_a_program():
    inner, x = Calls(lambda x: (x.sin() + 1, x * 2)), torch.randn(3)
    edge = to_edge(torch.export.export(inner, (x,))).exported_program()
    lowered = to_backend("SavedBackend", edge)
    method = Method(read_pte(lowered.buffer()))
    assert_same(method.execute(x), inner(x))
    assert method.executed == ["SavedBackend"]
    assert [each.id for each in lowered.program().execution_plan[0].delegates] == ["SavedBackend"]
    with pytest.raises(EtxError, match="no backend SavedBackend"):
        lowered.buffer(ExecutorchBackendConfig(target="executorch"))


def test_a_lowered_module_sees_other_shapes():
    batch = torch.export.Dim("batch", max=9)
    inner = Calls(lambda x: (x + 1).transpose(0, 1))
    edge = to_edge(
        torch.export.export(inner, (torch.randn(3, 2),), dynamic_shapes=(({0: batch},),))
    )
    lowered = to_backend("SavedBackend", edge.exported_program())

    class Outer(nn.Module):
        def forward(self, x):
            return lowered(x.exp()).sum(0)

    _, method = check(
        Outer(), [], (torch.randn(4, 2),), (torch.randn(7, 2),), dynamic_shapes=({0: batch},)
    )
    assert "SavedBackend" in method.executed


def test_a_graph_output_may_come_from_the_middle_of_a_partition():
    module = Calls(lambda x, y: (x + y, (x + y).sin(), x, ((x + y).sin() * y).relu()))
    x, y = torch.randn(3), torch.randn(3)
    program, _ = check(module, [takes(*ADD, *MUL, aten.sin.default)], (x, y), (y, x))
    assert counts(program) == {CALL: 1, "aten.relu.default": 1}


def test_operators_of_several_results_are_delegated_with_what_reads_them():
    module = Calls(lambda x: (torch.topk(x, 2), x.split(2)[1].sum()))
    program, _ = check(
        module, [takes(aten.topk.default, aten.split_copy.Tensor)], (torch.randn(5),)
    )
    assert counts(program) == {CALL: 2, "aten.sum.dim_IntList": 1}


def test_a_constant_inside_and_outside_is_in_both_places():
    w = torch.tensor([1.0, 2.0, 3.0])
    module = Calls(lambda self, x: ((x * self.w).sin() + self.w).relu() * self.w, w=w)
    program, _ = check(module, [takes(*ADD, *MUL)], (torch.randn(3),))
    assert counts(program)[CALL] == 3
    assert not program.state_dict
    program, _ = check(module, [takes(aten.add.Tensor)], (torch.randn(3),))
    assert list(program.state_dict) == ["w"]


class Untagging(ToyPartitioner):
    def partition(self, exported_program):
        result = super().partition(exported_program)
        for node in exported_program.graph.find_nodes(op="placeholder"):
            node.meta.pop("delegation_tag", None)
        return result


def test_an_untagged_constant_is_an_input_of_the_call():
    module = Calls(lambda self, x: x * self.w, w=torch.tensor([1.0, 2.0]))
    program, _ = check(module, [Untagging()], (torch.randn(2),))
    (call,) = [n for n in program.graph.nodes if str(n.target) == CALL]
    assert len(call.args) == 3
    assert list(program.state_dict) == ["w"]


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.tensor([5.0]))
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        self.total.add_(x.sum())
        self.seen.add_(1)
        return self.total * 2 + self.seen.sin()


CALLS = ((torch.ones(3),), (torch.full((3,), 2.0),), (torch.zeros(3),))


@pytest.mark.parametrize(
    ("operators", "left"),
    [
        ((*ADD, *MUL, aten.sum.dim_IntList, aten.sin.default), []),
        ((aten.add.Tensor, *MUL, aten.sum.dim_IntList), ["seen"]),
    ],
)
def test_a_delegate_may_own_its_state(operators, left):
    partitioner = takes(*operators, own_state=True)
    program, _ = check(Counter(), [partitioner], *CALLS)
    assert list(program.state_dict) == left
    assert list(program.graph_signature.buffers_to_mutate.values()) == left


def test_state_stays_outside_unless_it_is_tagged():
    program, _ = check(Counter(), [takes(*ADD, *MUL)], *CALLS)
    assert sorted(program.state_dict) == ["seen", "total"]


def test_all_of_a_method():
    program, method = check(Counter(), [AllNodePartitioner("SavedBackend")], *CALLS)
    assert counts(program) == {CALL: 1}
    assert method.executed == ["SavedBackend"] * 3
    assert not program.state_dict


@pytest.mark.parametrize("own_state", [True, False])
def test_a_delegate_with_state_stays_when_nobody_reads_it(own_state):
    partitioner = takes(*ADD, *MUL, aten.sum.dim_IntList, aten.sin.default, own_state=own_state)
    program = to_edge(torch.export.export(Counter(), CALLS[0])).to_backend(partitioner)
    edge = program.exported_program()
    output = edge.graph.output_node()
    output.args = (tuple(edge.graph.find_nodes(op="placeholder")[-1] for _ in output.args[0]),)
    RemoveDeadCode().run(edge)
    assert (CALL in counts(edge)) == own_state


class Grab(Partitioner):
    """Takes a buffer into a partition that does not hold all of its uses."""

    def partition(self, exported_program):
        for node in exported_program.graph.nodes:
            if node.target == aten.mul.Scalar or node.name == "b_total":
                node.meta["delegation_tag"] = "one"
        tag_constant_data(exported_program)
        tag_mutated_buffer(exported_program)
        return PartitionResult(exported_program, {"one": SAVED})


def test_a_buffer_that_others_use_cannot_be_owned():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.ones(1))

        def forward(self, x):
            y = self.total * 2
            self.total.add_(x.sum())
            return y

    program = torch.export.export(Scaled(), (torch.ones(2),))
    with pytest.raises(BackendError, match=r"b_total is tagged 'one'.*leave the buffer untagged"):
        to_edge(program).to_backend(Grab())


def branching(x, y):
    def positive(x, y):
        return ((x + y).sin() + y, x * 2)

    def negative(x, y):
        return (x - y, y * y)

    return torch.cond(x.sum() > 0, positive, negative, (x, y))


X, Y = torch.ones(3), torch.randn(3)
COND = ((X, Y), (-X, Y), (X, -Y))


def test_a_cond_whose_bodies_are_supported_is_delegated_whole():
    everything = (cond, *ADD, *MUL, aten.sub.Tensor, aten.sin.default)
    program, method = check(Calls(branching), [takes(*everything)], *COND)
    assert counts(program) == {CALL: 1, "aten.sum.dim_IntList": 1, "aten.gt.Scalar": 1}
    assert method.executed.count("SavedBackend") == 3


def test_else_its_branches_are_partitioned():
    program, _ = check(Calls(branching), [takes(cond, *ADD, *MUL)], *COND)
    assert counts(program)["cond"] == 1
    assert counts(program)[CALL] == 4


def loops(n, x):
    return torch._higher_order_ops.while_loop(
        lambda i, x: i < n,
        lambda i, x: (i + 1, (x * 1.5).sin() + x),
        (torch.zeros((), dtype=torch.int64), x),
    )


@pytest.mark.parametrize("whole", [True, False])
def test_loops(whole):
    operators = [*ADD, *MUL, aten.sin.default, aten.lt.Tensor]
    partitioner = takes(*operators, *([while_loop] if whole else []))
    calls = [(torch.tensor(n), X) for n in (3, 0, 1)]
    program, method = check(Calls(loops), [partitioner], *calls)
    assert counts(program).get("while_loop", 0) == (not whole)
    assert "SavedBackend" in method.executed


def test_shapes_that_change():
    batch = torch.export.Dim("batch", max=9)
    module = Calls(lambda x: (x + x.shape[0]).reshape(-1) * 2)
    shapes = (({0: batch},),)
    inputs = [(torch.randn(n, 2),) for n in (4, 9, 1)]
    partitioner = takes(*ADD, *MUL)
    check(module, [partitioner], *inputs, dynamic_shapes=shapes)


class Shared(BackendDetails):
    """Stores the weights of all methods once, as named data; the blob is their names."""

    @staticmethod
    def preprocess(edge_program, compile_specs):
        specs = {spec.key: spec.value.decode() for spec in compile_specs}
        store = NamedDataStore()
        for name, tensor in edge_program.state_dict.items():
            store.add_named_data(name, tensor, int(specs.get("align", 16)), specs.get("tag"))
        names = " ".join(edge_program.state_dict).encode()
        return PreprocessResult(names, data_store_output=store.get_named_data_store_output())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(self.linear(x).sin())


def shared(*specs):
    net, x = Net().eval(), torch.randn(1, 8)
    programs = {name: torch.export.export(net, (x,)) for name in ("one", "two")}
    partitioner = takes(aten.linear.default, spec=DelegationSpec("Shared", list(specs)))
    manager = to_edge_transform_and_lower(programs, partitioner=[partitioner])
    return net, manager.to_executorch(ExecutorchBackendConfig(target=None))


def test_named_data_is_stored_once_and_aligned():
    net, finished = shared(CompileSpec("align", b"4096"))
    named = {k: b for k, b in finished.pte_file.named_data.items() if not k.startswith("etx/")}
    assert sorted(named) == ["linear.bias", "linear.weight"]
    assert bytes(named["linear.weight"].data) == net.linear.weight.detach().numpy().tobytes()
    weight = net.linear.weight.detach().numpy().tobytes()
    assert finished.buffer.count(weight) == 1
    assert finished.buffer.index(weight) % 4096 == 0


def test_named_data_may_go_to_a_file_of_its_own(tmp_path):
    net, finished = shared(CompileSpec("tag", b"weights"))
    weight = net.linear.weight.detach().numpy().tobytes()
    assert weight not in finished.buffer
    finished.write_tensor_data_to_file(tmp_path)
    ptd = read_ptd((tmp_path / "weights.ptd").read_bytes())
    assert sorted(ptd.named_data) == ["linear.bias", "linear.weight"]
    assert bytes(ptd.named_data["linear.weight"].data) == weight
    assert ptd.named_data["linear.weight"].layout.sizes == [8, 8]


def test_a_store_keeps_names_apart():
    store = NamedDataStore()
    store.add_named_data("a", b"12", 4)
    store.add_named_data("a", b"12", 6)
    assert store.get_named_data_store_output().pte_data["a"].alignment == 12
    with pytest.raises(BackendError, match=r"'a' is given twice with different content"):
        store.add_named_data("a", b"13")
    with pytest.raises(BackendError, match=r"'a' is to be stored in the \.pte and in t\.ptd"):
        store.add_named_data("a", b"12", external_tag="t")


class Together(BackendDetails):
    """Sees the partitions of all methods at once."""

    @staticmethod
    def preprocess(edge_program, compile_specs):
        raise AssertionError("preprocess_multimethod is overridden")

    @classmethod
    def preprocess_multimethod(cls, edge_programs, compile_specs):
        total = sum(map(len, edge_programs.values()))
        return {
            method: [
                PreprocessResult(f"{method} {i} of {total}".encode()) for i in range(len(parts))
            ]
            for method, parts in edge_programs.items()
        }


def test_a_backend_may_lower_all_methods_together():
    programs = {
        name: torch.export.export(Calls(function), (torch.ones(2),))
        for name, function in (("a", lambda x: x.sin().exp().sin()), ("b", lambda x: x.sin()))
    }
    partitioner = takes(aten.sin.default, spec=DelegationSpec("Together"))
    edge = to_edge(programs).to_backend({"a": partitioner, "b": partitioner})
    pte = edge.to_executorch(ExecutorchBackendConfig(target=None)).pte_file
    assert [bytes(blob) for blob in pte.delegates] == [b"a 0 of 3", b"a 1 of 3", b"b 0 of 3"]
    with pytest.raises(EtxError, match="no method 'c'"):
        to_edge(programs).to_backend({"c": partitioner})


class Refusing(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        raise ValueError("too wide")


def test_what_a_backend_raises_is_told_with_its_place():
    program = torch.export.export(Calls(lambda x: x.cos().sin()), (torch.ones(2),))
    with pytest.raises(
        BackendError,
        match=r"backend 'Refusing' failed to lower method 'forward', node sin.*: ValueError: too w",
    ):
        to_edge(program).to_backend(takes(aten.sin.default, spec=DelegationSpec("Refusing")))


def test_a_partitioner_may_change_the_program_before_it_is_decomposed():
    class Doubling(ToyPartitioner):
        def transform_for_pre_decomposition(self, exported_program):
            return torch.export.export(Calls(lambda x: x + x), (torch.ones(2),))

    program = torch.export.export(Calls(lambda x: x.sin()), (torch.ones(2),))
    edge = to_edge_transform_and_lower(program, partitioner=[Doubling()])
    assert counts(edge.exported_program()) == {CALL: 1}


class Nested(nn.Module):
    def forward(self, x):
        return {"sum": x["a"] + x["b"], "rest": (x["a"] * x["b"],)}


class Alone(nn.Module):
    def forward(self, x):
        return x + x


PAIR = {"a": torch.randn(2), "b": torch.randn(2)}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("module", "given"), [(Nested(), PAIR), (Alone(), PAIR["a"])])
def test_a_delegate_in_a_module_keeps_its_forms(module, given, strict):
    class Around(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return pytree.tree_map(torch.sin, self.inner(x))

    program = to_edge(torch.export.export(module, (given,))).exported_program()
    around = Around(to_backend("ToyBackend", program))
    expected = Around(module)(given)
    torch.testing.assert_close(around(given), expected)
    edge = to_edge(torch.export.export(around, (given,), strict=strict))
    torch.testing.assert_close(edge.exported_program().module()(given), expected)
    plan = edge.to_executorch(ExecutorchBackendConfig(target=None)).executorch_program
    assert [each.id for each in plan.execution_plan[0].delegates] == ["ToyBackend"]


def test_partitioners_keep_their_spec():
    partitioner = AllNodePartitioner("ToyBackend", [])
    assert dict(partitioner.spec) == {}

    class WithSpec(AllNodePartitioner):
        def __init__(self, spec):
            super().__init__("ToyBackend", [])
            Partitioner.__init__(self, spec)

    made = WithSpec({"path": "a"})
    assert made.spec["path"] == "a"
    with pytest.raises(TypeError, match="does not support item assignment"):
        made.spec["path"] = "b"
