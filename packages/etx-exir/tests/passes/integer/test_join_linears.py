# SPDX-License-Identifier: BSD-3-Clause
"""Layers of one row that read the same input are one product."""

import etx_runtime
import pytest
import torch
from etx_exir import EdgeProgramManager, to_edge
from etx_exir.lower.copy_program import copy_program
from etx_exir.lower.lower import run_passes
from etx_exir.passes.integer import INTEGER, JoinLinears
from programs import edge
from quantized_programs import Weight, by_token, integer_operators
from torch import nn
from torch.nn import functional as F

ROW = torch.randn(1, 1, 64, generator=torch.Generator().manual_seed(0))


class Layers(nn.Module):
    """Linear layers of one input, each result used otherwise."""

    def __init__(self, widths, bits=8, dynamic=True, biases=(), half=False):
        super().__init__()
        torch.manual_seed(0)
        self.weights = nn.ModuleList(Weight(n, 64, bits=bits) for n in widths)
        self.biases = nn.ParameterList(
            torch.randn(n) if i in biases else None for i, n in enumerate(widths)
        )
        self.dynamic, self.half = dynamic, half

    def forward(self, x):
        x = x.half().float() if self.half else x
        found = []
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            found.append(F.linear(by_token(x) if self.dynamic else x, weight(), bias) + i)
        return found


def on_device(program, inputs):
    file = EdgeProgramManager(copy_program(program)).to_executorch().buffer
    return [torch.from_numpy(y) for y in etx_runtime.load(file)(*[x.numpy() for x in inputs])]


def joined(module, inputs=(ROW,)):
    whole, apart = edge(module, inputs), edge(module, inputs)
    run_passes(whole, INTEGER)
    run_passes(apart, [item for item in INTEGER if not isinstance(item, JoinLinears)])
    results = apart.module()(*inputs)
    assert all(map(torch.equal, whole.module()(*inputs), results))
    expected, found = on_device(apart, inputs), on_device(whole, inputs)
    assert len(found) == len(results)
    assert all(map(torch.equal, found, expected))
    return integer_operators(whole)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_the_numbers_are_the_same(bits, dynamic, half):
    name = ("dynamic_linear" if dynamic else "weight_only_linear") + ("_int4" if bits == 4 else "")
    assert joined(Layers((48, 16, 32), bits, dynamic, half=half)) == {name: 1}
    assert joined(Layers((48, 16), bits, dynamic, (0, 1), half)) == {name: 1}


@pytest.mark.parametrize("bits", [4, 8])
def test_only_a_last_block_can_be_partial(bits):
    name = "dynamic_linear_int4" if bits == 4 else "dynamic_linear"
    assert joined(Layers((7, 16, 32), bits)) == {name: 1}
    assert joined(Layers((7, 9, 32, 5), bits)) == {name: 3}
    assert joined(Layers((7, 9), bits)) == {name: 2}


def test_layers_with_and_without_bias_stay_apart():
    assert joined(Layers((16, 32, 48, 64), biases=(1, 2))) == {"dynamic_linear": 2}


def test_several_rows_stay_apart_since_parts_of_them_are_copies():
    rows = torch.randn(2, 64)
    assert joined(Layers((16, 32)), (rows,)) == {"dynamic_linear": 2}


def test_layers_of_a_shared_weight_stay_apart():
    class Tied(Layers):
        def forward(self, x):
            first, second = super().forward(x)
            return first, second, F.linear(by_token(second[..., :64]), self.weights[0]())

    assert joined(Tied((16, 64))) == {"dynamic_linear": 3}


def test_methods_of_a_file_read_the_same_weights():
    module = Layers((16, 32)).eval()
    sizes = {"decode": 1, "prefill": 4}
    programs = {
        name: torch.export.export(module, (torch.randn(n, 64),)) for name, n in sizes.items()
    }
    alone = len(to_edge(programs["prefill"]).to_executorch().buffer)
    assert len(to_edge(programs).to_executorch().buffer) < alone + 3 * 1024
