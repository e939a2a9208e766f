# SPDX-License-Identifier: BSD-3-Clause
"""Operators whose mask leaves results out: what is exported runs, whatever the mask says."""

from __future__ import annotations

import itertools

import pytest
import torch
from etx_exir import compile
from etx_exir.errors import EtxError
from etx_exir.ir.targets import default_operators
from etx_runtime import load
from programs import Calls
from torch.nn import functional as F

aten = torch.ops.aten


def convolution(transposed=False):
    x, w = torch.randn(1, 4, 6, 6), torch.randn(4, 4, 3, 3)
    y = F.conv_transpose2d(x, w) if transposed else F.conv2d(x, w)
    sizes = ([4], [1, 1], [0, 0], [1, 1], transposed, [0, 0], 1)
    return aten.convolution_backward.default, (torch.randn_like(y), x, w), sizes, 3


def layer_norm():
    x, w, b = torch.randn(3, 8), torch.rand(8), torch.rand(8)
    _, mean, rstd = aten.native_layer_norm.default(x, [8], w, b, 1e-5)

    def call(g, x, mean, rstd, w, b, mask):
        return aten.native_layer_norm_backward.default(g, x, [8], mean, rstd, w, b, mask)

    return call, (torch.randn(3, 8), x, mean, rstd, w, b), (), 3


def group_norm():
    x, w = torch.randn(2, 4, 9), torch.rand(4)
    _, mean, rstd = aten.native_group_norm.default(x, w, None, 2, 4, 9, 2, 1e-5)

    def call(g, x, mean, rstd, w, mask):
        return aten.native_group_norm_backward.default(g, x, mean, rstd, w, 2, 4, 9, 2, mask)

    return call, (torch.randn(2, 4, 9), x, mean, rstd, w), (), 3


def batch_norm():
    x, w, mean, variance = torch.randn(2, 4, 9), torch.rand(4), torch.rand(4), torch.rand(4)

    def call(g, x, w, mean, variance, mask):
        none = torch.empty(0)
        args = (g, x, w, mean, variance, none, none, False, 1e-5, mask)
        return aten.native_batch_norm_backward.default(*args)

    return call, (torch.randn(2, 4, 9), x, w, mean, variance), (), 3


def grid_sampler():
    x, grid = torch.randn(1, 2, 5, 5), torch.rand(1, 3, 3, 2)

    def call(g, x, grid, mask):
        return aten.grid_sampler_2d_backward.default(g, x, grid, 0, 0, False, mask)

    return call, (torch.randn(1, 2, 3, 3), x, grid), (), 2


KINDS = {
    "convolution": convolution,
    "transposed convolution": lambda: convolution(True),
    "layer norm": layer_norm,
    "group norm": group_norm,
    "batch norm": batch_norm,
    "grid sampler": grid_sampler,
}
REFUSED = {"grid sampler"}
CASES = [
    (name, mask)
    for name, count in ((name, KINDS[name]()[3]) for name in KINDS)
    for mask in itertools.product((True, False), repeat=count)
    if any(mask) and (name == "convolution" or not any(mask[1:]))
]


@pytest.mark.parametrize(("name", "mask"), CASES)
def test_masked_results(name, mask, tmp_path):
    call, tensors, rest, _ = KINDS[name]()

    def function(*args):
        return [
            r for r, expected in zip(call(*args, *rest, list(mask)), mask, strict=True) if expected
        ]

    path = tmp_path / "net.pte"
    if name in REFUSED:
        with pytest.raises(EtxError, match="grid_sampler"):
            compile(Calls(function), tensors, path=path)
        return
    compile(Calls(function), tensors, path=path)
    outputs = load(path)(*tensors)
    for found, expected in zip(outputs, function(*tensors), strict=True):
        torch.testing.assert_close(torch.as_tensor(found), expected, rtol=1e-4, atol=1e-4)


def test_a_result_that_is_left_out_may_be_returned(tmp_path):
    call, tensors, rest, _ = convolution()
    module = Calls(lambda *args: tuple(call(*args, *rest, [False, True, False])))
    compile(module, tensors, path=tmp_path / "net.pte")
    outputs = load(tmp_path / "net.pte")(*tensors)
    assert [output is None for output in outputs] == [True, False, True]


def test_every_masked_operator_with_a_kernel_is_tried():
    kernels = default_operators()
    masked = {
        schema.name
        for schema in torch._C._jit_get_all_schemas()
        if any(argument.name == "output_mask" for argument in schema.arguments)
    }
    found = {name.split(".")[0] for name in kernels} & masked
    assert found == {"aten::convolution_backward"}
