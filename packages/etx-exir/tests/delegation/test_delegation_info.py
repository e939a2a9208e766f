# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir import get_delegation_info, to_edge, to_edge_transform_and_lower
from etx_exir.delegation.explain import explanation, outside
from etx_exir.delegation.info import print_delegation_info
from programs import Calls
from toy import ToyPartitioner


def branching(x, y):
    return torch.cond(x.sum() > 0, lambda x, y: (x + y).sin(), lambda x, y: x * y, (x, y)) + y


def lowered():
    inputs = (torch.ones(2), torch.ones(2) * 2)
    return torch.export.export(Calls(branching), inputs)


def test_counts_by_operator_also_in_branches(capsys):
    module = to_edge(lowered()).to_backend(ToyPartitioner()).exported_program().graph_module
    info = get_delegation_info(module)
    assert info.get_summary() == (
        "Delegates: 3 (3 ToyBackend)\nOperators in delegates: 3\nOperators outside: 4"
    )
    rows = {r.op_type: (r.delegated, r.non_delegated) for r in info.get_operator_delegation_rows()}
    assert rows == {
        "aten.add.Tensor": (2, 0),
        "aten.mul.Tensor": (1, 0),
        "aten.gt.Scalar": (0, 1),
        "aten.sin.default": (0, 1),
        "aten.sum.dim_IntList": (0, 1),
        "cond": (0, 1),
    }
    print_delegation_info(module)
    out = capsys.readouterr().out
    assert out.startswith(info.get_summary())
    assert out.splitlines()[-1].split() == ["total", "3", "4"]


class Other(ToyPartitioner):
    def why_not(self, node):
        return None if super().why_not(node) is None else "not mine"


def test_every_partitioner_gives_its_reason():
    partitioners = [Other(), Other(), ToyPartitioner()]
    edge = to_edge_transform_and_lower(lowered(), partitioner=partitioners)
    rows = {row.operator: row for row in outside(edge.exported_program())}
    assert rows["aten.sin.default"].reasons == {
        "Other": "not mine",
        "Other #2": "not mine",
        "ToyPartitioner": "aten.sin.default is neither an addition nor a product",
    }
    assert rows["aten.sin.default"].source.startswith("programs.py:")
    text = explanation(list(rows.values())).splitlines()
    assert text[0].split()[:4] == ["operator", "module", "source", "partitioner"]
    assert len(text) == 2 + 3 * len(rows)
    alone = to_edge(lowered()).exported_program()
    assert "no partitioner was given" in explanation(outside(alone))
