# SPDX-License-Identifier: BSD-3-Clause
"""A program against another of the same model: builds, targets, quantizations, runtimes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from compared_models import content, exported, rows
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_devtools.compare.programs import compare_programs, compare_with_file
from etx_exir import to_edge, to_edge_transform_and_lower
from etx_schema import EtxError, read_pte, write_pte
from etx_schema.problem import DEBUG_KEY
from planted import Plan, quantized, scaled, weight
from torch import nn


def text(report):
    return "\n".join(report.lines())


@pytest.mark.parametrize("name", rows())
def test_a_program_is_like_itself(name):
    inputs = exported(name)[1]
    flat = torch.utils._pytree.tree_leaves(inputs)
    report = compare_programs(content(name), content(name), [flat, flat])
    assert report.first is None, text(report)
    for call in report.calls:
        assert {check.by for check in call.checks} == {"program"}
        assert all(check.made.max_abs == 0 for check in call.checks)


@pytest.mark.parametrize("name", ["convolutions", "transformer", "dynamic"])
def test_two_targets(name):
    program, inputs = exported(name)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    report = compare_programs(edge.to_executorch().pte_file, content(name), [inputs])
    assert report.first is None, text(report)
    assert {check.by for check in report.calls[0].checks} == {"program"}


@pytest.mark.parametrize(("turn", "module"), [(0, "stem.0"), (1, "depthwise")])
@pytest.mark.parametrize("change", [scaled(0.2, 1.2), scaled(1, 1.01)])
def test_the_first_that_makes_an_error(turn, module, change):
    plan = Plan("convolutions")
    number = weight("aten::convolution.out", turn, 1, change)(plan)
    for pair in ((plan.pte, content("convolutions")), (content("convolutions"), plan.pte)):
        report = compare_programs(*pair, [plan.inputs])
        check = report.first[1]
        assert (check.instruction, check.module) == (number, module), text(report)
        assert "its kernel is right on what it read" in check.cause


def test_two_quantizations():
    """Scales differ: values are paired and compared, and only their distance is told."""
    program, inputs, int8 = quantized()
    report = compare_programs(int8, content("convolutions"), [inputs])
    assert report.first is None, text(report)
    found = {check.operator: check for check in report.calls[0].checks}
    for name in ("conv", "depthwise_conv", "add", "mean", "linear"):
        assert 15 < found[f"etx::quantized_{name}.out"].made.snr_db < 60, name
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    report = compare_programs(edge.to_executorch().pte_file, int8, [inputs])
    assert report.first is None, text(report)


def test_a_stripped_file_is_paired_by_values():
    pte = read_pte(content("convolutions"))
    del pte.named_data[DEBUG_KEY]
    report = compare_programs(pte, content("convolutions"), [exported("convolutions")[1]])
    assert report.first is None, text(report)
    assert all(check.made.max_abs == 0 for check in report.calls[0].checks)


def test_all_methods_of_files(tmp_path):
    def build(last):
        model = nn.Sequential(nn.Linear(4, 3), last)
        nn.init.constant_(model[0].weight, 0.5)
        nn.init.constant_(model[0].bias, 0.1)
        example = (torch.randn(2, 4),)
        methods = {"one": torch.export.export(model, example)}
        methods["two"] = torch.export.export(nn.Sequential(model, nn.Tanh()), example)
        return to_edge(methods).to_executorch().pte_file

    a, b = tmp_path / "a.pte", tmp_path / "b.pte"
    write_pte(build(nn.ReLU()), a)
    write_pte(build(nn.Sigmoid()), b)
    assert compare_with_file(str(a), str(a)).first is None
    report = compare_with_file(str(a), str(b))
    assert [call.method for call in report.calls] == ["one", "two"]
    assert report.random
    assert report.first[1].operator == "aten::relu.out", text(report)
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    with pytest.raises(EtxError, match="name it with --method"):
        compare_with_file(str(a), str(b), [str(tmp_path / "x.npy")])


def test_other_inputs():
    with pytest.raises(EtxError, match="the programs take other inputs"):
        compare_programs(content("convolutions"), content("dynamic"), [(torch.randn(2, 4),)])


@pytest.mark.parametrize("name", ["convolutions", "dynamic"])
def test_a_file_and_an_exported_program(name):
    program, inputs = exported(name)
    report = compare_programs(content(name), program, [inputs])
    assert report.first is None, text(report)
    with pytest.raises(EtxError, match="the programs take other inputs"):
        compare_programs(content("transformer"), program, [inputs])
