# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions in bf16: near eager for any window, and reasons where one stays."""

import etx_runtime
import numpy as np
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.ir.provenance import DECLINED
from on_device import export
from torch import nn
from torch.export import Dim

torch.manual_seed(0)
BF16 = ExecutorchBackendConfig(precision="bf16")
IMAGE = torch.randn(2, 8, 9, 10)


def compiled(module, inputs, **options):
    return to_edge(export(module.eval(), inputs, **options)).to_executorch(BF16)


def check(result, module, *inputs):
    got = np.asarray(etx_runtime.load(result.buffer)(*(x.numpy() for x in inputs)))
    expected = module(*inputs).detach().numpy()
    assert np.abs(got - expected).max() <= 0.02 * np.abs(expected).max()


def operators(result):
    return {op.name for op in result.executorch_program.execution_plan[0].operators}


@pytest.mark.parametrize(
    ("module", "x"),
    [
        (nn.Conv2d(8, 12, 3, padding=1), IMAGE),
        (nn.Conv2d(8, 12, 3, stride=2, padding=1, groups=2), IMAGE),
        (nn.Conv2d(8, 12, 1), IMAGE),
        (nn.Conv2d(8, 12, 1, bias=False), IMAGE[..., :1, :1]),
        (nn.Conv2d(8, 12, (3, 2), dilation=2), IMAGE),
        (nn.Conv1d(8, 6, 5, padding=2), IMAGE[:, :, 0]),
        (nn.Conv3d(2, 4, 3, padding=1), IMAGE[:, None].expand(2, 2, 8, 9, 10)),
        (nn.Conv2d(8, 12, 3), IMAGE.to(memory_format=torch.channels_last)),
    ],
)
def test_is_near_eager(module, x):
    result = compiled(module, (x,))
    assert "etx::narrow_conv" in operators(result)
    check(result, module, x)


def test_sizes_may_vary():
    module = nn.Conv2d(8, 4, 3, padding=1)
    shapes = ({2: Dim("height", min=2, max=40), 3: Dim("width", min=2, max=40)},)
    result = compiled(module, (IMAGE,), dynamic_shapes=shapes)
    for size in ((2, 2), (9, 31), (40, 40)):
        check(result, module, torch.randn(2, 8, *size))


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (nn.Conv2d(8, 8, 3, groups=8), "one channel"),
        (nn.ConvTranspose2d(8, 4, 3), "transposed"),
        (nn.Conv2d(8, 4, 3, padding=9), "beyond the image"),
        (nn.Conv2d(8, 4, 3, padding=12, dilation=4), "beyond the image"),
    ],
)
def test_says_why_a_layer_stays(module, reason):
    result = compiled(module, (IMAGE,))
    nodes = result.exported_program().graph.nodes
    (said,) = [text for n in nodes for text in n.meta.get(DECLINED, {}).values()]
    assert reason in said
    check(result, module, IMAGE)
