# SPDX-License-Identifier: BSD-3-Clause
"""A pass that nearly applies says what lacks; a pass may replace several results at once."""

import json
import operator

import torch
from etx_exir import to_edge
from etx_exir.delegation.explain import declined, near_misses
from etx_exir.ir.provenance import DECLINED
from etx_exir.passes import NodePass
from etx_schema.cli import main
from programs import Calls, apply, assert_like_eager, core, counts, refusals
from torch.nn import functional as F

aten = torch.ops.aten
SCALED = """
import torch
from torch.nn import functional as F

class Net(torch.nn.Module):
    example_inputs = (torch.ones(2, 3),)

    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.ones(3, 3))

    def forward(self, x):
        y, z = F.linear(x, self.w), F.linear(x.exp(), self.w.exp())
        return y * 2 + y, z * 2 + z, z.relu() * 3
"""


class Limited(NodePass):
    """Let products be sums, unless a number is too large."""

    targets = (aten.mul.Tensor,)
    limit = 2

    def rewrite(self, node, graph):
        if not isinstance(node.args[1], int):
            return None
        if node.args[1] > self.limit:
            return f"the number is larger than {self.limit}"
        return graph.call_function(aten.add.Tensor, (node.args[0], node.args[0]))


def test_the_last_run_of_a_pass_decides():
    program = core(Calls(lambda x: x * 2 + x * 3), (torch.ones(2),))
    strict = Limited()
    strict.limit = 1
    assert refusals(strict, program) == {"the number is larger than 1"}
    item = Limited()
    assert item.run(program)
    assert refusals(item, program) == {"the number is larger than 2"}
    kept = [node for node in program.graph.nodes if node.meta.get(DECLINED)]
    assert [node.args[1] for node in kept] == [3], "no replacement inherits a reason"


class Halves(NodePass):
    """``split(x)`` -> its parts, as slices."""

    targets = (aten.split_copy.Tensor,)

    def rewrite(self, node, graph):
        source, length = node.args
        ends = range(0, source.meta["val"].shape[0], length)
        return tuple(
            graph.call_function(aten.slice_copy.Tensor, (source, 0, i, i + length)) for i in ends
        )


def test_results_are_replaced_one_by_one():
    module, inputs = Calls(lambda x: [part.exp() for part in x.split(2)]), (torch.randn(5, 2),)
    program = core(module, inputs)
    apply(Halves(), program)
    assert counts(program) == {"aten.slice_copy.Tensor": 3, "aten.exp.default": 3}
    assert not program.graph.find_nodes(op="call_function", target=operator.getitem)
    assert_like_eager(program, module, inputs)


def test_equal_reasons_are_one_row():
    def function(self, x):
        layers = [F.linear(x, w) for w in (self.a, self.b)]
        return [y * 2 + y for y in layers]

    module = Calls(function, a=torch.randn(3, 3), b=torch.randn(3, 3))
    edge = to_edge(torch.export.export(module, (torch.ones(2, 3),)))
    (row,) = declined(edge.exported_program())
    assert (row.operator, row.by, row.times) == ("aten.mul.Scalar", "fold_scale", 2)
    assert row.source.startswith("programs.py:")
    assert row.reason in near_misses([row])


def test_explain_tells_why_passes_left_operators(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scaled.py").write_text(SCALED)
    command = ["compile", "scaled.py:Net", "-o", "net.pte"]
    assert main(command) == 0
    assert "fold_scale" not in capsys.readouterr().out
    assert main([*command, "--explain"]) == 0
    assert "another operator reads the unscaled result" in capsys.readouterr().out
    assert main([*command, "--explain", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["methods"]["forward"]["declined"]
    assert {(row["by"], row["source"]) for row in rows} == {("fold_scale", "scaled.py:14")}
    assert sum(row["times"] for row in rows) == 2
