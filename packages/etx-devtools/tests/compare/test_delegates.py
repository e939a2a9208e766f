# SPDX-License-Identifier: BSD-3-Clause
"""Programs with delegates: values at their borders, and inside of them."""

from __future__ import annotations

import copy

import etx_runtime
import numpy as np
import pytest
import torch
from compared_models import exported, rows
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_devtools.compare import compare
from etx_devtools.compare.inside import compile_tapped
from etx_exir import to_edge_transform_and_lower
from etx_schema import serialize_pte

NAMES = ("convolutions", "transformer", "dynamic")


def delegated(program):
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    return edge.to_executorch().pte_file


def run(pte, inputs):
    method = etx_runtime.Runtime.get().load_program(serialize_pte(pte)).load_method("forward")
    return method.execute([x.numpy() for x in inputs])


@pytest.mark.parametrize("name", NAMES)
def test_borders(name):
    program, inputs = exported(name)
    report = compare(delegated(program), program, [inputs])
    assert report.first is None, "\n".join(report.lines())
    (call,) = report.calls
    assert any(check.operator == "delegate XnnpackBackend" for check in call.checks)
    assert {check.by for check in call.checks} == {"value"}


@pytest.mark.parametrize("name", NAMES)
def test_inside(name):
    program, inputs = exported(name)
    tapped = compile_tapped(program, [XnnpackPartitioner()])
    plain, more = run(delegated(program), inputs), run(tapped, inputs)
    assert len(more) > len(plain)
    assert all(np.array_equal(a, b) for a, b in zip(plain, more, strict=False))
    report = compare(tapped, program, [inputs])
    assert report.first is None, "\n".join(report.lines())
    assert len(report.calls[0].checks) >= len(more)


@pytest.mark.parametrize(
    ("part", "value", "module"),
    [
        ("stem.0.weight", "batch_norm", "stem.1"),
        ("depthwise.bias", "batch_norm_1", "norm"),
        ("norm.running_mean", "batch_norm_1", "norm"),
        ("head.weight", "linear", "head"),
    ],
)
def test_a_wrong_weight_inside(part, value, module):
    program, inputs = exported("convolutions")
    wrong = copy.deepcopy(rows()["convolutions"][0])
    wrong.load_state_dict(program.state_dict, strict=False)
    with torch.no_grad():
        wrong.state_dict()[part].view(-1)[0] += 0.5
    with torch.no_grad():
        other = torch.export.export(wrong, inputs)
    assert compare(delegated(other), program, [inputs]).first[1].instruction == 0
    report = compare(compile_tapped(other, [XnnpackPartitioner()]), program, [inputs])
    check = report.first[1]
    assert (check.operator, check.value) == ("delegate XnnpackBackend", value)
    assert check.module == module
    assert check.source.startswith("compared_models.py:")
    assert [c.value for c in report.calls[0].checks if c.wrong] == [value]
