# SPDX-License-Identifier: BSD-3-Clause
"""`etx report --netron`: a copy in which operators have names that Netron knows.

`interop/viewers.py` opens such copies in Netron itself, and looks each kernel up in its tables.
"""

from __future__ import annotations

import pytest
import torch
from etx_devtools.report.netron import CALLS, netron_copy
from etx_exir import compile
from etx_quant import quantize
from etx_schema import (
    EtxError,
    KernelCall,
    Null,
    Operator,
    Tensor,
    TensorList,
    cli,
    read_pte,
    serialize_pte,
    write_pte,
)
from etx_schema.operator_names import operator_name
from report_programs import chain_of
from torch import nn


class Sequence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.LSTM(8, 16)
        self.second = nn.RNN(16, 8, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.second(self.first(x)[0])[0]
        return nn.functional.scaled_dot_product_attention(rows, rows, rows)


def calls_of(pte):
    """Return (operator, values of its arguments) of each call, in order."""
    (plan,) = pte.program.execution_plan
    calls = (each.instr_args for each in plan.chains[0].instructions)
    return [
        (operator_name(plan, call.op_index), [plan.values[index].val for index in call.args])
        for call in calls
        if isinstance(call, KernelCall)
    ]


@pytest.mark.filterwarnings("ignore:The tensor attributes")
def test_recurrent_layers_have_lists_of_tensors(tmp_path):
    path = tmp_path / "m.pte"
    compile(Sequence(), (torch.ones(6, 5, 8),), path=path)
    drawn, refused = netron_copy(path)
    found = dict(calls_of(drawn))
    names = ["aten::lstm.input", "aten::rnn_relu.input", "aten::scaled_dot_product_attention"]
    assert refused == []
    assert [name for name in found if name != "aten::full.out"] == names
    own = {name: values for name, values in calls_of(read_pte(path)) if name.startswith("etx::")}
    output, state, cells = found[names[0]][-3:]
    assert [each.sizes for each in (output, state, cells)] == [[6, 5, 16], [6, 5, 16], [5, 16]]
    states, weights = found[names[0]][1:3]
    assert isinstance(states, TensorList)
    assert len(states.items) == 2
    values = drawn.program.execution_plan[0].values
    shapes = [values[place].val.sizes for place in weights.items]
    given = [each for each in own["etx::lstm.out"][3:8] if isinstance(each, Tensor)]
    assert shapes == [each.sizes for each in given]
    query, key, value, mask, dropout, causal, scale, groups, result = found[names[2]]
    assert query.sizes == key.sizes == value.sizes == result.sizes == [6, 5, 8]
    assert isinstance(mask, Null)
    assert isinstance(dropout, Null)
    assert isinstance(groups, Null)
    assert (causal.bool_val, scale.double_val) == (False, pytest.approx(8**-0.5))


@pytest.mark.filterwarnings("ignore:The tensor attributes")
def test_packed_recurrent_layers_have_lists_of_tensors(tmp_path):
    path, rows = tmp_path / "m.pte", torch.ones(6, 5, 8)
    compile(quantize(Sequence().eval(), [(rows,)], recipe="int8-weight"), (rows,), path=path)
    drawn, refused = netron_copy(path)
    found, own = dict(calls_of(drawn)), dict(calls_of(read_pte(path)))
    assert refused == []
    values = drawn.program.execution_plan[0].values
    for name, of, places in (
        ("lstm.input", "weight_only_lstm", (3, 5, 7, 8)),
        ("rnn_relu.input", "weight_only_rnn", (2, 4, 6, 7)),
    ):
        weights = next(v for v in found[f"aten::{name}"][2:] if isinstance(v, TensorList))
        given = own[f"etx::{of}.out"]
        shapes = [values[place].val.sizes for place in weights.items]
        assert shapes == [given[place].sizes for place in places]


def test_integer_operators_have_the_names_of_layers(tmp_path):
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(392, 10))
    image = torch.ones(1, 3, 16, 16)
    path = tmp_path / "m.pte"
    compile(quantize(net.eval(), [(image,)]), (image,), path=path)
    drawn, refused = netron_copy(path)
    found = dict(calls_of(drawn))
    assert refused == []
    assert not [name for name in found if name.startswith("etx::")]
    assert [len(found[name]) for name in ("aten::conv2d", "aten::linear")] == [8, 4]
    own = dict(calls_of(read_pte(path)))["etx::quantized_conv.out"]
    assert found["aten::conv2d"][1].sizes == own[1].sizes
    again, _ = netron_copy(path)
    assert again.program == drawn.program


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if ">" in call])
def test_arguments_of_a_name_are_where_torch_has_them(name):
    target, *places = CALLS[name].split(" > ")[0].split()
    own, torchs = arguments_of(name.removesuffix(".out")), arguments_of(target)
    taken = {
        argument: own[int(place)]
        for argument, place in zip(torchs, places, strict=target.startswith("aten"))
        if place.isdigit()
    }
    assert {argument: argument for argument in taken if argument in own} == {
        argument: given for argument, given in taken.items() if argument in own
    }


def arguments_of(name):
    """Return the names of the arguments by torch's schema, those that only a keyword takes too."""
    namespace, operator = name.split("::")
    packet, overload = (*operator.split("."), "default")[:2]
    schema = getattr(getattr(getattr(torch.ops, namespace), packet), overload)._schema
    return [argument.name for argument in schema.arguments if not argument.is_out]


def test_what_netron_does_not_know_is_said(tmp_path, capsys):
    path, page, copy = (str(tmp_path / name) for name in ("m.pte", "r.html", "copy.pte"))
    with open(path, "wb") as file:
        file.write(chain_of(2, delegated=True))
    pte = read_pte(path)
    (plan,) = pte.program.execution_plan
    plan.operators[0].name = "mine::twice"
    plan.delegates[0].id = "MyBackend"
    write_pte(pte, path)
    assert cli.main(["report", path, "-o", page, "--netron", copy]) == 0
    said = capsys.readouterr().err
    name = operator_name(plan, 0)
    assert f"Netron has no schema of MyBackend, {name}, and refuses the copy" in said
    assert name in dict(calls_of(read_pte(copy)))


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_call_without_its_arguments_is_refused(name):
    pte = read_pte(chain_of(2))
    (plan,) = pte.program.execution_plan
    own, _, overload = name.partition(".")
    plan.operators[0] = Operator(own, overload)
    plan.chains[0].instructions[0].instr_args.args = []
    if " " not in CALLS[name]:
        assert calls_of(netron_copy(serialize_pte(pte))[0])[0] == (CALLS[name], [])
        return
    with pytest.raises(EtxError, match="instruction 0: an index is out of range, or it has"):
        netron_copy(serialize_pte(pte))
