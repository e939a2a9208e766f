# SPDX-License-Identifier: BSD-3-Clause
"""Each change of a program is one line, whatever it did to the places of instructions."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_devtools.diff import changes, diff
from etx_devtools.diff.commands import lines
from etx_devtools.diff.limits import exceeded
from etx_devtools.diff.match import moved, pair
from etx_devtools.diff.rows import Constant, Row
from etx_exir import to_edge, to_edge_transform_and_lower
from etx_exir.lower import lower
from etx_quant import quantize
from etx_schema import EtxError, cli, read_pte
from report_programs import chain_of
from torch import nn

THEIRS = Path(__file__).parent / "data" / "executorch.bpte"


class Net(nn.Module):
    def __init__(self, first="first"):
        super().__init__()
        torch.manual_seed(0)
        self.add_module(first, nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()))
        self.last = nn.Linear(4, 5)
        self.name = first

    def forward(self, x):
        return self.last(self.get_submodule(self.name)(x).mean((2, 3)))


def compiled(model, dtype=torch.float32):
    x = torch.zeros(1, 3, 8, 8, dtype=dtype)
    return to_edge(torch.export.export(model.eval(), (x,))).to_executorch().buffer


@pytest.fixture(scope="module")
def before():
    return compiled(Net())


def test_a_file_is_the_same_as_itself(before):
    found = diff(before, before)
    assert found.is_empty
    assert found.methods[0].equal_weights == 4


def test_a_renamed_module_is_one_line(before):
    (method,) = diff(before, compiled(Net("other"))).methods
    (change,) = method.changes
    assert (change.kind, change.text) == ("renamed", "module first is other: 2 instructions")
    assert (method.weights, method.equal_weights) == ([], 4)


def test_a_changed_weight_is_one_line(before):
    model = Net()
    model.last.weight.data[1, 2] += 0.25
    (method,) = diff(before, compiled(model)).methods
    assert method.changes == []
    (weight,) = method.weights
    assert (weight.name, weight.change) == ("last.weight", "values")
    assert weight.largest == pytest.approx(0.25, rel=1e-6)


def test_another_dtype_changes_types_and_names_each_weight(before):
    found = diff(before, compiled(Net().half(), torch.float16))
    (method,) = found.methods
    assert {weight.change for weight in method.weights} == {"retyped"}
    assert {change.kind for change in method.changes} == {"changed"}
    assert method.signature[0] == "inputs: float32[1, 3, 8, 8] -> float16[1, 3, 8, 8]"
    assert found.weight_bytes[1] * 2 == found.weight_bytes[0]
    assert "arena" in exceeded("arena>100", found)
    assert exceeded("arena>+0%", found) == ""


def test_reads_executorch_s_files(before):
    found = diff(before, THEIRS)
    pairs = {change.kind for change in found.methods[0].changes}
    assert "changed" in pairs
    assert found.operators["aten::_native_batch_norm_legit_no_training.out"] == (0, 1)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.last = nn.Linear(4, 5)

    def forward(self, x):
        return self.last(self.norm(self.conv(x)).relu().mean((2, 3)))


def shown_changes(before, after):
    return [line for line in lines(diff(before, after)) if line.startswith("  ")]


def test_a_batch_norm_fusion_of_a_file_is_one_line(monkeypatch):
    fused = compiled(Normed())
    rest = [item for item in lower.PIPELINE if "batch_norm" not in item.name]
    monkeypatch.setattr(lower, "PIPELINE", tuple(rest))
    (line,) = shown_changes(compiled(Normed()), fused)
    assert line.startswith("  fused: aten::_native_batch_norm_legit_no_training.out (norm, ")
    assert re.search(r"\) into aten::convolution.out \(conv, .*\), with \d weights$", line)


def test_one_more_delegate_of_a_file_is_one_line(before):
    program = torch.export.export(Net().eval(), (torch.zeros(1, 3, 8, 8),))
    lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    found = shown_changes(before, lowered.to_executorch().buffer)
    assert [line for line in found if "arena" not in line] == [
        line for line in found if line.startswith("  delegated: 4 instructions into delegate Xnn")
    ]
    assert len(found) <= 2


def row(index, operator, module="", **more):
    return Row(index, f"aten::{operator}.out", module, origin=operator, **more)


def kinds(before, after):
    rows = [replace(each, index=i) for i, each in enumerate(before)]
    others = [replace(each, index=i) for i, each in enumerate(after)]
    return [(c.kind, c.text) for c in changes._changes(rows, others, pair(rows, others))]


CONV = row(0, "convolution", "net.0", constants=((1, Constant(0, "", "float32", (1,))),))
NORM = row(1, "batch_norm", "net.1", constants=CONV.constants, producers=(0,))
RELU = row(2, "relu", "net.2", producers=(1,))


def test_a_batch_norm_fusion_is_one_line():
    assert kinds([CONV, NORM, RELU], [CONV, RELU]) == [
        ("fused", "aten::batch_norm.out (net.1) into aten::convolution.out (net.0)")
    ]


def test_one_more_delegate_is_one_line():
    inner = (("net.0", "convolution"), ("net.1", "batch_norm"))
    call = Row(0, "delegate Toy (9 bytes, 0)", inner=inner)
    ((kind, text),) = kinds([CONV, NORM, RELU], [call, RELU])
    assert (kind, text) == ("delegated", "2 instructions into delegate Toy (9 bytes, 0)")
    assert kinds([call, RELU], [CONV, NORM, RELU])[0][0] == "undelegated"


def test_an_int8_layer_replaces_the_float_one(before):
    """In its module, whatever the operators in between; their weights are counted there."""
    int8 = quantize(Net().eval(), [(torch.zeros(1, 3, 8, 8),)])
    (method,) = diff(before, compiled(int8)).methods
    found = [change.text for change in method.changes if change.kind == "replaced"]
    assert [text.partition(" (")[0] for text in found] == [
        "aten::convolution.out by etx::quantized_conv.out",
        "aten::mean.out by etx::quantized_mean.out",
        "aten::linear.out by etx::quantized_linear.out",
    ]
    assert all(text.endswith("weights") for text in (found[0], found[2]))
    assert not [weight for weight in method.weights if weight.largest is not None]


def test_of_each_kind_some_are_shown():
    found = [changes.Change("removed", str(n)) for n in range(50)] + [changes.Change("added", "x")]
    method = changes.MethodDifference("forward", (50, 1), ([], []), [], found, 0, [])
    whole = changes.Difference(("a", "b"), (1, 1), (1, 1), {}, {}, [], [method], [], [])
    assert list(lines(whole, 40))[-2:] == ["  and 10 more (--all)", "  added: x"]


def test_moved_added_and_removed():
    rows = [row(i, "add", f"m{i}") for i in range(5)]
    order = [rows[4], *rows[:4]]
    assert kinds(rows, order) == [("moved", "aten::add.out (m4): 4 -> 0")]
    assert kinds(rows, [*rows[:2], row(0, "exp", "new"), *rows[2:]]) == [
        ("added", "aten::exp.out (new)")
    ]
    assert kinds(rows, rows[1:]) == [("removed", "aten::add.out (m0)")]
    same = [row(i, "add", "m") for i in range(40)]
    assert kinds(same, same[:-2]) == [("removed", "aten::add.out (m), 2 times")]


def test_20000_instructions_take_little_more_than_to_read_them():
    files = chain_of(20_000), chain_of(19_990, "x")
    start = time.process_time()
    for file in files:
        read_pte(file)
    middle = time.process_time()
    found = diff(*files)
    assert time.process_time() - middle <= 4 * (middle - start)
    assert found.methods[0].instructions == (20_000, 19_990)


def test_pairs_are_found_in_any_order():
    generator = np.random.default_rng(0)
    rows = [row(i, "add", f"m{i}") for i in range(300)]
    order = generator.permutation(300)
    other = [replace(rows[i], index=n) for n, i in enumerate(order)]
    pairs = pair(rows, other)
    assert all(old.module == new.module for old, new in pairs)
    assert len(pairs) == 300
    kept = len(pairs) - len(moved(pairs))
    assert kept == longest([new.index for _, new in pairs])


def longest(numbers):
    best = []
    for n, number in enumerate(numbers):
        best.append(1 + max((best[m] for m in range(n) if numbers[m] < number), default=0))
    return max(best)


@pytest.mark.parametrize("limit", ["arena", "x>1", "size>", "size>5%", "size>+x%", "size>+-1%"])
def test_wrong_limits(limit, before):
    with pytest.raises(EtxError, match=r"expected NAME>\+X%"):
        exceeded(limit, diff(before, before))


@pytest.mark.parametrize("limit", ["time>+5%", "error>1"])
def test_limits_that_need_a_run(limit, before):
    with pytest.raises(EtxError, match="needs --run"):
        exceeded(limit, diff(before, before))


def test_command(before, tmp_path, capsys):
    model = Net()
    model.last.bias.data += 1
    one, other = tmp_path / "a.pte", tmp_path / "b.pte"
    one.write_bytes(before)
    other.write_bytes(compiled(model))
    words = ["diff", str(one), str(other), "--run"]
    assert cli.main([*words, "--fail-if", "size>+0%"]) == 0
    out = capsys.readouterr().out
    assert "weight last.bias: values, float32[5], largest difference 1\n" in out
    assert "output 0: differs by 1\n" in out
    assert cli.main([*words, "--fail-if", "error>0.5", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["exceeded"] == ["error is 1 (was 0), error>0.5 allows 0.5"]
    assert not document["same"]
    assert cli.main(["diff", str(one), str(THEIRS.parent / "add.pte"), "--run"]) == 2
    assert f"add.pte does not take those of {one}: forward takes " in capsys.readouterr().err
    assert cli.main(["diff", str(one), str(tmp_path / "c.pte")]) == 2
    other.write_bytes(b"nothing at all")
    assert cli.main(["diff", str(one), str(other)]) == 2
    assert "b.pte: byte" in capsys.readouterr().err
