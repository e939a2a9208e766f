# SPDX-License-Identifier: BSD-3-Clause
"""Linear layers in bf16: half of the bytes, near eager, and reasons where one stays."""

import etx_runtime
import numpy as np
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.errors import ConfigError
from etx_exir.ir.provenance import DECLINED
from on_device import Function, export
from torch import nn

torch.manual_seed(0)
BF16 = ExecutorchBackendConfig(precision="bf16")
TIED = nn.Parameter(torch.randn(33, 12))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = TIED

    def forward(self, tokens):
        rows = nn.functional.embedding(tokens, self.weight)
        return nn.functional.linear(rows, self.weight)


def made(module, *inputs):
    result = to_edge(export(module.eval(), inputs)).to_executorch(BF16)
    got = np.asarray(etx_runtime.load(result.buffer)(*(x.numpy() for x in inputs)))
    expected = module(*inputs).detach().numpy()
    assert np.abs(got - expected).max() <= 0.02 * np.abs(expected).max()
    return result


def operators(result):
    return {op.name for op in result.executorch_program.execution_plan[0].operators}


@pytest.mark.parametrize("shape", [(1, 64), (3, 20, 64), (40, 64)])
@pytest.mark.parametrize("bias", [True, False])
def test_holds_half_of_the_bytes(shape, bias):
    module = nn.Linear(64, 200, bias=bias)
    x = torch.randn(shape)
    narrow, wide = made(module, x), to_edge(export(module, (x,))).to_executorch()
    assert operators(narrow) == {"etx::narrow_linear"}
    assert len(wide.buffer) - len(narrow.buffer) > 64 * 200 * 1.8


def test_a_tied_weight_is_stored_once():
    result = made(Tied(), torch.tensor([[1, 5, 32]]))
    assert operators(result) >= {"etx::narrow_linear", "aten::embedding"}
    held = [x for x in result.exported_program().constants.values() if x.numel() == TIED.numel()]
    assert [x.dtype for x in held] == [torch.bfloat16]


@pytest.mark.parametrize(
    ("function", "inputs", "reason"),
    [
        (lambda x, w: nn.functional.linear(x, w), (torch.ones(2, 4), torch.ones(3, 4)), "computed"),
        (
            lambda x: nn.functional.linear(x, TIED) + (TIED * x[:1]).sum(),
            (torch.ones(2, 12),),
            "stored twice",
        ),
        (
            lambda x: nn.functional.linear(x, torch.full((3, 4), 3.4e38)),
            (torch.ones(2, 4),),
            "beyond the largest number",
        ),
    ],
)
def test_says_why_a_layer_stays(function, inputs, reason):
    result = to_edge(export(Function(function), inputs)).to_executorch(BF16)
    nodes = result.exported_program().graph.nodes
    (said,) = [text for n in nodes for text in n.meta.get(DECLINED, {}).values()]
    assert reason in said
    assert operators(result).isdisjoint({"etx::narrow_linear"})


def test_needs_a_target_with_the_kernels():
    edge = to_edge(export(nn.Linear(4, 3), (torch.ones(1, 4),)))
    with pytest.raises(ConfigError, match=r"has no kernel etx::narrow_linear\.out"):
        edge.to_executorch(ExecutorchBackendConfig(precision="bf16", target="executorch"))
    for options in ({"precision": "half"}, {"precision": "bf16", "target": None}):
        with pytest.raises(ConfigError, match="precision="):
            ExecutorchBackendConfig(**options)
