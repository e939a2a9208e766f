# SPDX-License-Identifier: BSD-3-Clause
"""Another model, wrong inputs, a stripped file, a missing method: one clear error each."""

from __future__ import annotations

import json

import pytest
import torch
from compared_models import content, exported
from etx_devtools.compare import compare
from etx_schema import EtxError, NamedBlob, read_pte
from etx_schema.problem import DEBUG_KEY


@pytest.fixture
def net():
    program, inputs = exported("convolutions")
    return read_pte(content("convolutions")), program, inputs


def test_another_model(net):
    pte, _, inputs = net

    class Other(torch.nn.Module):
        def forward(self, x):
            return x.relu().sum()

    with pytest.raises(EtxError, match=r"not the one of this file: instruction 0 .*'batch_norm'"):
        compare(pte, torch.export.export(Other(), inputs), [inputs])


def test_another_size(net):
    pte, program, _ = net
    with pytest.raises(
        EtxError, match=r"input 0 \(x\): the eager model takes float32\[1, 3, 8, 8\]"
    ):
        compare(pte, program, [(torch.randn(1, 3, 9, 9),)])


def test_too_many_inputs(net):
    pte, program, inputs = net
    with pytest.raises(EtxError, match="takes 1 inputs, 2 were given"):
        compare(pte, program, [(*inputs, *inputs)])


def test_no_such_method(net):
    pte, program, inputs = net
    with pytest.raises(EtxError, match="no method 'encode'"):
        compare(pte, program, [inputs], method="encode")


@pytest.mark.parametrize("order", [[0], [0, 1, 2, 3, 4], [-1, 0, 1, 2], [3, 3, 3, 3]])
def test_an_order_of_other_dimensions(net, order):
    pte, program, inputs = net
    document = json.loads(bytes(pte.named_data[DEBUG_KEY].data))
    values = document["forward"]["values"]
    values[next(iter(values))] = ["batch_norm", 1.0, order]
    pte.named_data[DEBUG_KEY] = NamedBlob(json.dumps(document).encode())
    with pytest.raises(EtxError, match="4 dimensions are not those of the order"):
        compare(pte, program, [inputs])


def test_a_stripped_file_is_compared_by_operator(net):
    pte, program, inputs = net
    del pte.named_data[DEBUG_KEY]
    report = compare(pte, program, [inputs])
    assert report.stripped
    assert {check.by for check in report.calls[0].checks} == {"operator"}
    assert report.first is None
    assert "does not say which values" in "\n".join(report.lines())


class Other(torch.nn.Module):
    def forward(self, x, y):
        return x.sum() + y


@pytest.mark.parametrize(
    ("inputs", "takes"),
    [
        ((torch.ones(1), torch.ones(1)), r"float32\[1\], float32\[1\]"),
        ((torch.ones(1, 3, 8, 8), 2.0), r"float32\[1, 3, 8, 8\], float"),
    ],
)
def test_a_model_that_takes_something_else(net, inputs, takes):
    pte, _, _ = net
    program = torch.export.export(Other(), inputs)
    with pytest.raises(
        EtxError, match=rf"forward takes \(float32\[1, 3, 8, 8\]\), the model \({takes}"
    ):
        compare(pte, program, [inputs])
