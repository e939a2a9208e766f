# SPDX-License-Identifier: BSD-3-Clause
"""Every instruction leads back to a module and a line, whatever happened to its node."""

from __future__ import annotations

import inspect
import io
import json

import pytest
import torch
from etx_exir import (
    BackendDetails,
    DelegateMappingBuilder,
    ExecutorchBackendConfig,
    PreprocessResult,
    to_edge,
    to_edge_transform_and_lower,
)
from etx_exir.errors import BackendError
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_schema.strip import strip
from interpreter import Method
from running import assert_same, reread
from torch import nn
from toy import ToyPartitioner


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        y = torch.relu(self.norm(self.conv(x)))
        y = y.flatten(2).transpose(1, 2)
        return y + self.attention(y, y, y)[0]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(4, 2)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += 1
        y = self.head(self.block(x).mean(1))
        return torch.cond(y.sum() > 0, lambda y: y.sin() * 2, lambda y: torch.cos(y) - 1, (y,))


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Body()

    def forward(self, x):
        return self.inner(x)


class Body(nn.Module):
    def forward(self, x):
        return torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x.sin()), (0, x))[1]


IMAGE = (torch.randn(1, 3, 4, 4),)


def exported(module, inputs):
    with torch.no_grad():
        return torch.export.export(module.eval(), inputs)


def lowered(module=None, inputs=IMAGE, partitioner=None, **options):
    program = exported(module or Net(), inputs)
    edge = to_edge_transform_and_lower(program, partitioner=partitioner)
    return edge.to_executorch(ExecutorchBackendConfig(target=None, **options))


def rows_of(manager):
    data = manager.pte_file.named_data["etx/debug"].data
    return json.loads(bytes(data))["forward"]


def line_of(function, text):
    source, first = inspect.getsourcelines(function)
    (number,) = [i for i, line in enumerate(source) if text in line]
    return f"test_debug.py:{first + number}"


@pytest.mark.parametrize(("module", "inputs"), [(Net, IMAGE), (Loop, (torch.randn(3),))])
def test_every_instruction_has_module_line_and_handle(module, inputs):
    manager = lowered(module(), inputs)
    rows = rows_of(manager)["instructions"]
    assert len(rows) == len(manager.executorch_program.execution_plan[0].chains[0].instructions)
    known = [row for row in rows if row and "module" in row and row["source"] and row["handles"]]
    assert len(known) > 0.95 * len(rows)
    for row in known:
        assert row["source"].startswith("test_debug.py:")


def test_lines_after_decomposition_fusion_and_in_branches():
    rows = rows_of(lowered())["instructions"]
    by_op = {row["op"]: row for row in rows if row}
    conv = by_op["aten.convolution.default"]
    assert conv["module"] == "block.conv"
    assert conv["source"] == line_of(Block.forward, "self.norm(self.conv(x))")
    assert by_op["aten._softmax.default"]["module"] == "block.attention"
    assert by_op["aten.sin.default"]["source"] == line_of(Net.forward, "torch.cond")
    assert by_op["aten.cos.default"]["module"] == ""


def test_what_no_module_made_belongs_to_its_neighbours():
    """As the nodes that quantize inputs and outputs: to what makes their value, else takes it."""
    module = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 4), torch.nn.Tanh())
    program = torch.export.export(module.eval(), (torch.ones(2, 4),))
    first, *_, last = (node for node in program.graph.nodes if node.op == "call_function")
    for node in (first, last):
        for key in ("nn_module_stack", "stack_trace"):
            node.meta.pop(key)
    rows = rows_of(to_edge(program).to_executorch())["instructions"]
    assert [row["op"].split(".")[1] for row in rows] == ["relu", "linear", "tanh"]
    assert [row["module"] for row in rows] == ["1", "1", "1"]
    assert len({row["source"] for row in rows}) == 1


def test_a_branch_belongs_to_the_module_that_runs_it():
    rows = rows_of(lowered(Loop(), (torch.randn(3),)))["instructions"]
    (sin,) = [row for row in rows if row["op"] == "aten.sin.default"]
    assert sin["module"] == "inner"
    assert sin["source"] == line_of(Body.forward, "while_loop")


def test_nodes_of_one_source_share_a_handle():
    program = to_edge(exported(Net(), IMAGE)).exported_program()
    handles: dict[int, set[str]] = {}
    for module in graph_modules(program.graph_module):
        for node in module.graph.nodes:
            if node.op == "call_function":
                place = f"{node.meta['stack_trace']}{node.meta.get('nn_module_stack')}"
                handles.setdefault(node.meta["debug_handle"], set()).add(place)
    assert len(handles) > 10
    assert all(len(places) == 1 for places in handles.values())


class HandleBackend(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        builder = DelegateMappingBuilder(generated_identifiers=True)
        for node in edge_program.graph.nodes:
            if node.op == "call_function":
                builder.insert_delegate_mapping_entry(nodes=node)
        return PreprocessResult(b"x", debug_handle_map=builder.get_delegate_mapping())


class Sum(nn.Module):
    def forward(self, x):
        return x * x + x


class Sums(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = Sum(), Sum()

    def forward(self, x):
        return self.right(self.left(x).sin())


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.sums = Sums()

    def forward(self, x):
        return self.sums(x)


def test_handles_lead_into_a_delegate():
    manager = lowered(Outer(), (torch.ones(3),), [ToyPartitioner("HandleBackend")])
    document = rows_of(manager)
    first, _, last = document["instructions"]
    assert (first["module"], first["op"]) == ("sums.left", "HandleBackend")
    assert last["module"] == "sums.right"
    assert first["source"] == line_of(Sum.forward, "x * x + x")
    assert [first["ids"][key] for key in ("0", "1")] == [[h] for h in first["handles"]]
    inner = [document["handles"][str(handle)] for handle in first["handles"]]
    assert [row["op"] for row in inner] == ["aten.mul.Tensor", "aten.add.Tensor"]
    assert {row["source"] for row in inner} == {first["source"]}
    handles, delegates = manager.debug_handle_map["forward"], manager.delegate_map["forward"]
    assert handles[0] == first["handles"]
    assert isinstance(handles[1], int)
    assert delegates[0]["name"] == "HandleBackend"
    assert delegates[0]["delegate_map"] == {0: (handles[0][0],), 1: (handles[0][1],)}
    assert list(delegates) == [0, 2]


def test_handles_of_a_custom_pass_and_of_new_nodes():
    def add_cosine(module):
        (sin,) = module.graph.find_nodes(op="call_function", target=torch.ops.aten.sin.default)
        with module.graph.inserting_after(sin):
            new = module.graph.call_function(torch.ops.aten.cos.default, (sin,))
        new.meta["val"] = sin.meta["val"]
        sin.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)

    program = torch.export.export(Outer(), (torch.ones(3),))
    manager = to_edge(program).transform([add_cosine]).to_executorch()
    handles = list(manager.debug_handle_map["forward"].values())
    rows = rows_of(manager)["instructions"]
    assert len(handles) == len(rows)
    (new,) = [row for row in rows if row["op"] == "aten.cos.default"]
    assert handles.count(new["handles"][0]) == 1


def test_builder_of_delegate_maps_refuses_what_has_no_meaning():
    builder = DelegateMappingBuilder()
    assert builder.insert_delegate_mapping_entry(handles=[5, 2, None, 5], identifier="a") == "a"
    assert builder.insert_delegate_mapping_entry(handles=7, identifier=3) == 3
    assert builder.get_delegate_mapping() == {"a": (2, 5), 3: (7,)}
    with pytest.raises(BackendError, match="has an entry 'a' already"):
        builder.insert_delegate_mapping_entry(handles=1, identifier="a")
    with pytest.raises(BackendError, match="needs an id"):
        builder.insert_delegate_mapping_entry(handles=1)
    with pytest.raises(BackendError, match="either nodes or handles"):
        builder.insert_delegate_mapping_entry(identifier=1)
    with pytest.raises(BackendError, match="none of its nodes has a debug handle"):
        builder.insert_delegate_mapping_entry(handles=[None], identifier=9)
    with pytest.raises(BackendError, match="generates the ids"):
        DelegateMappingBuilder(generated_identifiers=True).insert_delegate_mapping_entry(
            handles=1, identifier=1
        )


def test_stripped_files_compute_the_same():
    module = Net().eval()
    manager = lowered(module, emit_stacktrace=True)
    whole = manager.pte_file
    assert whole.program.execution_plan[0].chains[0].stacktrace
    small = strip(whole)
    assert "etx/debug" not in small.named_data
    assert not small.program.execution_plan[0].chains[0].stacktrace
    expected = Method(reread(whole)).execute(*IMAGE)
    assert_same(Method(reread(small)).execute(*IMAGE), expected)
    with torch.no_grad():
        assert_same(expected, [module(*IMAGE)])


def test_dump_prints_the_file():
    manager = lowered(Outer(), (torch.ones(3),))
    out = io.StringIO()
    manager.dump_executorch_program(out=out)
    assert "= aten::sin.out(" in out.getvalue()
    assert "from aten.sin.default" not in out.getvalue()
    manager.dump_executorch_program(verbose=True, out=out)
    assert "from aten.sin.default, handle " in out.getvalue()
