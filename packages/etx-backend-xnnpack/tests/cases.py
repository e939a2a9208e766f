# SPDX-License-Identifier: BSD-3-Clause
"""What is lowered and compared with eager: one row a lowering, or a form of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from case import STEP, Call, Case, With, function, in_half, int8, layer
from dynamic_cases import DYNAMIC_INT8
from hidden import HIDDEN
from models import ADDED_MASK, CACHED, LlamaStep, VisionTransformer, seen_once, seen_twice
from torch import nn
from torch.nn import functional as F

IMAGE = (2, 6, 9, 7)
ROWS = (3, 5, 8)
ROW = torch.export.Dim("rows", min=4, max=20)
SOME, OTHERS = (torch.export.Dim(name, max=20) for name in ("some", "others"))

ELEMENTWISE = [
    *(
        function(name, getattr(torch, name), ROWS)
        for name in ("abs", "ceil", "cos", "exp", "floor", "neg", "sigmoid", "sin", "tanh")
    ),
    *(
        function(name, getattr(torch, name), ROWS, positive=True)
        for name in ("log", "rsqrt", "sqrt", "reciprocal", "square")
    ),
    function("gelu", F.gelu, ROWS),
    function("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), ROWS),
    function("silu", F.silu, ROWS),
    function("hardswish", lambda x: F.hardswish(x * 4), ROWS),
    function("hardsigmoid", lambda x: F.hardsigmoid(x * 4), ROWS),
    function("leaky_relu", lambda x: F.leaky_relu(x, 0.2), ROWS),
    function("elu", lambda x: F.elu(x, 1.5), ROWS),
    function("relu", F.relu, ROWS),
    function("relu6", lambda x: F.relu6(x * 5), ROWS),
    function("hardtanh", lambda x: F.hardtanh(x, -0.5, 0.25), ROWS),
    function("clamp", lambda x: x.clamp(-0.5, 0.25), ROWS),
    function("clamp_min", lambda x: x.clamp(min=0.1), ROWS),
    function("clamp_max", lambda x: x.clamp(max=0.1), ROWS),
    *(
        function(f"pow_{power}", lambda x, power=power: x.pow(power), ROWS, positive=True)
        for power in (2, 3, 0.5, -0.5)
    ),
    layer("prelu", lambda: nn.Sequential(nn.Conv2d(6, 4, 1), nn.PReLU(4)), IMAGE),
    layer("prelu_of_rows", lambda: nn.PReLU(5), ROWS),
    layer("prelu_one", nn.PReLU, ROWS),
]

BINARY = [
    *(
        function(name, getattr(torch, name), ROWS, (5, 1))
        for name in ("add", "sub", "mul", "div", "maximum", "minimum")
    ),
    *(
        function(f"{name}_number", lambda x, name=name: getattr(torch, name)(x, 3), ROWS)
        for name in ("add", "sub", "mul", "div")
    ),
    function("rsub", lambda x: 3 - x, ROWS),
    function("add_relu", lambda x, y: F.relu(x + y), ROWS, ROWS),
    layer(
        "add_of_layouts",
        lambda: Call(lambda f, x, y: f(x) + y, nn.Conv2d(6, 4, 1)),
        IMAGE,
        (4, 9, 1),
    ),
    layer(
        "squeeze_and_excite",
        lambda: Call(
            lambda f, g, x: (h := f(x)) * torch.sigmoid(g(h.mean((2, 3), keepdim=True))),
            nn.Conv2d(6, 8, 3),
            nn.Conv2d(8, 8, 1),
        ),
        IMAGE,
    ),
    function("add_scaled_constant", lambda x: x * torch.arange(8.0) + 2, ROWS),
]

CONVOLUTIONS = [
    layer("conv2d", lambda: nn.Conv2d(6, 8, 3, padding=1), IMAGE),
    layer(
        "conv2d_strided",
        lambda: nn.Conv2d(6, 8, (3, 2), (2, 1), (1, 0), bias=False),
        IMAGE,
    ),
    layer("conv2d_dilated", lambda: nn.Conv2d(6, 8, 3, dilation=2), IMAGE),
    layer("conv2d_grouped", lambda: nn.Conv2d(6, 8, 3, groups=2), IMAGE),
    layer("conv2d_depthwise", lambda: nn.Conv2d(6, 12, 3, groups=6, padding=1), IMAGE),
    layer("conv2d_one_channel", lambda: nn.Conv2d(1, 4, 3), (2, 1, 8, 8)),
    layer("conv2d_relu", lambda: nn.Sequential(nn.Conv2d(6, 8, 3), nn.ReLU()), IMAGE),
    layer("conv2d_relu6", lambda: nn.Sequential(nn.Conv2d(6, 8, 3), nn.ReLU6()), IMAGE),
    layer(
        "conv2d_batch_norm",
        lambda: nn.Sequential(nn.Conv2d(6, 8, 3), nn.BatchNorm2d(8), nn.SiLU()),
        IMAGE,
    ),
    layer(
        "conv2d_of_channels_last",
        lambda: Call(
            lambda f, x: f(x.to(memory_format=torch.channels_last)).exp(), nn.Conv2d(6, 8, 3)
        ),
        IMAGE,
    ),
    layer("conv1d", lambda: nn.Conv1d(6, 8, 3, stride=2, padding=1), (2, 6, 11)),
    layer("conv1d_chain", lambda: nn.Sequential(nn.Conv1d(6, 8, 3), nn.Conv1d(8, 4, 2)), (2, 6, 9)),
    layer("conv_transpose2d", lambda: nn.ConvTranspose2d(6, 8, 3, 2, 1, 1), IMAGE),
    layer("conv_transpose2d_grouped", lambda: nn.ConvTranspose2d(6, 8, 2, 2, groups=2), IMAGE),
    layer("conv_transpose1d", lambda: nn.ConvTranspose1d(6, 8, 4, 2), (2, 6, 7)),
    layer(
        "convolution_of_single_numbers",
        lambda: With(
            lambda v, w, x: torch.convolution(
                torch.convolution(x, v, None, [2], [1], [1], False, [0], 1),
                *(w, None, [2], [1], [1], True, [1, 1], 1),
            ),
            (4, 6, 3, 3),
            (4, 6, 3, 3),
        ),
        IMAGE,
    ),
]

PRODUCTS = [
    layer("linear", lambda: nn.Linear(8, 5), ROWS),
    layer("linear_without_bias", lambda: nn.Linear(8, 5, bias=False), (3, 8)),
    layer("linear_relu", lambda: nn.Sequential(nn.Linear(8, 5), nn.ReLU()), ROWS),
    layer(
        "linear_of_image",
        lambda: Call(lambda f, x: f(x.permute(0, 2, 3, 1)), nn.Linear(6, 5)),
        IMAGE,
    ),
    layer("addmm", lambda: With(lambda b, m, x: torch.addmm(b, x, m), (4,), (8, 4)), (3, 8)),
    layer("addmm_sum", lambda: With(lambda m, b, x: torch.addmm(b, x, m), (8, 4), (3, 4)), (3, 8)),
    function("mm", torch.mm, (3, 8), (8, 4)),
    layer("mm_of_constant", lambda: With(lambda m, x: torch.mm(x, m), (8, 3)), (3, 8)),
    layer("bmm_of_constant", lambda: With(lambda m, x: torch.bmm(m, x), (3, 4, 5)), ROWS),
    function("bmm", torch.bmm, (3, 4, 5), (3, 5, 6)),
    function("bmm_transposed", lambda a, b: torch.bmm(a, b.transpose(1, 2)), (3, 4, 5), (3, 6, 5)),
    function("matmul_broadcast", torch.matmul, (2, 1, 4, 5), (3, 5, 6)),
    layer("product_of_parameter", lambda: Call(lambda f, x: x @ f.weight, nn.Linear(6, 8)), ROWS),
]

Q, K = (2, 3, 5, 8), (2, 3, 7, 8)
ATTENTION = [
    function("attention", F.scaled_dot_product_attention, Q, K, K),
    *(
        function(f"attention_of_a_cache_{name}", call, *shapes, **more)
        for name, call, shapes, more in CACHED
    ),
    function(
        "attention_causal", lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), Q
    ),
    function("attention_mask", F.scaled_dot_product_attention, Q, K, K, (2, 1, 5, 7)),
    function("attention_seen", seen_once, Q, K, K, (2, 1, 5, 7), outside=ADDED_MASK),
    function("attention_seen_twice", seen_twice, Q, K, K, (2, 1, 5, 7), outside=ADDED_MASK),
    function(
        "attention_hidden_rows",
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m > 0.3),
        Q,
        K,
        K,
        (2, 1, 5, 1),
        outside=ADDED_MASK,
    ),
    function(
        "attention_grouped",
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m, enable_gqa=True),
        (2, 6, 5, 8),
        K,
        K,
        (2, 1, 5, 7),
    ),
    layer(
        "multi_head",
        lambda: Call(lambda f, x: f(x, x, x, need_weights=False)[0], nn.MultiheadAttention(8, 2)),
        ROWS,
    ),
    function("softmax", lambda x: x.softmax(-1), ROWS),
    function("softmax_of_channels", lambda x: x.softmax(1), IMAGE),
]

NORMS = [
    layer("layer_norm", lambda: nn.LayerNorm(8), ROWS),
    layer("layer_norm_of_two", lambda: nn.LayerNorm((5, 8)), ROWS),
    layer("layer_norm_without_weight", lambda: nn.LayerNorm(8, elementwise_affine=False), ROWS),
    layer(
        "layer_norm_of_channels",
        lambda: Call(
            lambda f, g, x: g(f(x).permute(0, 2, 3, 1)), nn.Conv2d(6, 4, 1), nn.LayerNorm(4)
        ),
        IMAGE,
    ),
    layer("rms_norm", lambda: nn.RMSNorm(8), ROWS),
    layer("group_norm", lambda: nn.GroupNorm(3, 6), IMAGE),
    layer("instance_norm", lambda: nn.InstanceNorm2d(6, affine=True), IMAGE),
    layer("batch_norm", lambda: nn.BatchNorm2d(6), IMAGE),
    layer("batch_norm_of_rows", lambda: nn.BatchNorm1d(8), (3, 8)),
]

POOLS = [
    function("max_pool", lambda x: F.max_pool2d(x, 3, 2, 1), IMAGE),
    function("max_pool_dilated", lambda x: F.max_pool2d(x, 2, 1, dilation=2), IMAGE),
    function("max_pool_dilated_down", lambda x: F.max_pool2d(x, 2, 1, 1, (2, 1)), IMAGE),
    function("max_pool_dilated_border", lambda x: F.max_pool2d(x, 4, 3, 2, (1, 3)), IMAGE),
    *(
        function(f"largest_{'_'.join(map(str, dims))}", lambda x, dims=dims: x.amax(dims), IMAGE)
        for dims in ((2,), (-1,), (2, 3))
    ),
    function("largest_kept", lambda x: x.max(3, keepdim=True)[0], IMAGE),
    function("max_pool_up", lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True), IMAGE),
    function("avg_pool", lambda x: F.avg_pool2d(x, 3, 2), IMAGE),
    function("avg_pool_padded", lambda x: F.avg_pool2d(x, 3, 2, 1), IMAGE),
    function(
        "avg_pool_of_inside", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), IMAGE
    ),
    function("adaptive_avg_pool", lambda x: F.adaptive_avg_pool2d(x, (3, 7)), IMAGE),
    function("adaptive_avg_pool_one", lambda x: F.adaptive_avg_pool2d(x, 1), IMAGE),
    *(
        function(f"mean_{'_'.join(map(str, dims))}", lambda x, dims=dims: x.mean(dims), IMAGE)
        for dims in ((2, 3), (1,), (0, 2), (3,), (1, 2, 3))
    ),
    function("mean_kept", lambda x: x.mean((1, 2), keepdim=True), IMAGE),
    function("sum", lambda x: x.sum((2, 3)), IMAGE),
]

SHAPES = [
    function("view", lambda x: x.view(2, 3, 2, 63).exp(), IMAGE),
    function("permute", lambda x: x.permute(2, 0, 3, 1).exp(), IMAGE),
    function("transpose", lambda x: x.transpose(1, 2), ROWS),
    function("squeeze", lambda x: x.squeeze(1) + 1, (3, 1, 5)),
    function("unsqueeze", lambda x: x.unsqueeze(1) + 1, ROWS),
    layer(
        "patches",
        lambda: Call(lambda f, x: f(x).flatten(2).transpose(1, 2), nn.Conv2d(6, 4, 3)),
        IMAGE,
    ),
    function("slice", lambda x: x[:, 1:4, 2:-1], ROWS),
    function("slice_of_image", lambda x: F.max_pool2d(x, 2)[:, 1:4, 2:-1], IMAGE),
    function(
        "slice_of_rows_of_any_number",
        lambda x: torch.relu(torch.relu(x)[:, 1:4, : 2**40]),
        ROWS,
        dynamic=({2: ROW},),
        calls=[[(3, 5, 4)], [(3, 5, 20)]],
    ),
    function(
        "slice_from_the_second_of_any_number",
        lambda x: torch.relu(x)[1:],
        (5, 5, 8),
        dynamic=({0: ROW},),
        calls=[[(4, 5, 8)], [(20, 5, 8)]],
        outside=("aten.slice_copy.Tensor",),
    ),
    function(
        "slice_of_the_last_of_any_number",
        lambda x: torch.relu(x)[-1:],
        (5, 5, 8),
        dynamic=({0: ROW},),
        calls=[[(4, 5, 8)], [(20, 5, 8)]],
        outside=("aten.slice_copy.Tensor",),
    ),
    function("slice_stepped", lambda x: x[..., 1::2], ROWS),
    function("roll", lambda x: x.roll((1, -2, 6), (1, 2, 1)), IMAGE),
    Case(
        "known_table",
        lambda: With(lambda t, x: x + t[torch.tensor([1, 0, 1, 2, 2])], (3, 8)),
        (ROWS,),
    ),
    function("select", lambda x: x[:, -2], ROWS),
    function("chunk", lambda x: torch.mul(*x.chunk(2, -1)), ROWS),
    function("split_with_sizes", lambda x: x.split([1, 3, 4], -1)[1], ROWS),
    function("unbind", lambda x: torch.sub(*x.unbind(1)[1:3]), ROWS),
    *(
        function(
            f"cat_{count}",
            lambda x, count=count: torch.cat([x * i for i in range(count)], 1),
            IMAGE,
        )
        for count in (2, 3, 4, 5, 6, 13)
    ),
    function("stack", lambda x, y: torch.stack([x, y], 1), ROWS, ROWS),
    function("pad", lambda x: F.pad(x, (1, 2, 0, 1), value=2.5), IMAGE),
    function("expand", lambda x: x.expand(2, 3, 5, 4) * 2, (3, 1, 4)),
    function(
        "repeat_interleave", lambda x: x[:, :, None].expand(3, 5, 4, 8).reshape(3, 20, 8), ROWS
    ),
    function("full", lambda x: torch.cat([x, torch.full((3, 1, 8), 0.5)], 1), ROWS),
    function("bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), IMAGE),
    function(
        "bilinear_corners",
        lambda x: F.interpolate(x, (5, 11), mode="bilinear", align_corners=True),
        IMAGE,
    ),
    function("nearest", lambda x: F.interpolate(x, scale_factor=(2, 3)), IMAGE),
    function("same_twice", lambda x: (y := x + 1, y), ROWS),
    function("argument_returned", lambda x: (z := x.view(15, 8), z.exp()), ROWS),
]


def half(*shape: int) -> torch.Tensor:
    """Return a mask that is true for every other element, and for all of the first row."""
    mask = torch.arange(torch.Size(shape).numel()).reshape(shape) % 2 == 0
    mask[..., :1] = True
    return mask


class Masked(nn.Module):
    """A function of a constant mask, and of the arguments."""

    mask: torch.Tensor

    def __init__(self, function: Callable[..., Any], *shape: int) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("mask", half(*shape))

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(self.mask, *args)


CHOICES = [
    layer("masked_fill", lambda: Masked(lambda m, x: x.masked_fill(m, -2.5), 5, 8), ROWS),
    layer(
        "masked_fill_inf",
        lambda: Masked(lambda m, x: x.masked_fill(~m, -torch.inf).softmax(-1), 5, 8),
        ROWS,
    ),
    layer("where_number", lambda: Masked(lambda m, x: torch.where(m, x, 0.5), 5, 8), ROWS),
    layer("where_wide", lambda: Masked(lambda m, x: torch.where(m, x, 0.5), 3, 5, 8), (5, 1)),
    layer("where_of_two", lambda: Masked(torch.where, 5, 8), ROWS, ROWS),
    layer(
        "where_of_image",
        lambda: Call(
            lambda f, g, x: g(f(x), x[:, :4, :, :1]), nn.Conv2d(6, 4, 1), Masked(torch.where, 9, 7)
        ),
        IMAGE,
    ),
]

DYNAMIC = [
    layer(
        "rows_of_any_number",
        lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU()),
        ROWS,
        dynamic=({1: torch.export.Dim("rows", min=2, max=32)},),
        calls=[[(3, 2, 8)], [(3, 31, 8)]],
    ),
    layer(
        "batches_of_rows",
        lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)),
        ROWS,
        dynamic=({0: torch.export.Dim("batch", max=9), 1: torch.export.Dim("rows", max=32)},),
        calls=[[(1, 2, 8)], [(9, 31, 8)]],
    ),
    layer(
        "images_of_any_number",
        lambda: nn.Sequential(
            nn.Conv2d(6, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)
        ),
        IMAGE,
        dynamic=({0: torch.export.Dim("batch", max=5)},),
        calls=[[(1, 6, 9, 7)], [(5, 6, 9, 7)]],
    ),
    layer(
        "images_of_any_size",
        lambda: nn.Sequential(nn.Conv2d(6, 8, 3, 2), nn.Sigmoid(), nn.Conv2d(8, 4, 1)),
        IMAGE,
        dynamic=(
            {
                2: torch.export.Dim("height", min=5, max=40),
                3: torch.export.Dim("width", min=5, max=40),
            },
        ),
        calls=[[(2, 6, 40, 21)], [(2, 6, 5, 7)]],
    ),
    function(
        "attention_of_groups_of_any_length",
        lambda q, k, m: F.scaled_dot_product_attention(q, k, k, attn_mask=m, enable_gqa=True),
        (2, 12, 5, 8),
        (2, 2, 7, 8),
        (2, 1, 5, 7),
        dynamic=({2: SOME}, {2: OTHERS}, {2: SOME, 3: OTHERS}),
        calls=[[(2, 12, r, 8), (2, 2, c, 8), (2, 1, r, c)] for r, c in ((1, 20), (20, 4))],
    ),
    function(
        "attention_of_any_length",
        lambda q, k: F.scaled_dot_product_attention(q, k, k),
        Q,
        K,
        dynamic=(
            {2: torch.export.Dim("rows", max=20)},
            {2: torch.export.Dim("columns", max=20)},
        ),
        calls=[[(2, 3, 1, 8), (2, 3, 20, 8)], [(2, 3, 20, 8), (2, 3, 4, 8)]],
    ),
]

INT8 = [
    int8("conv2d", lambda: nn.Conv2d(6, 8, 3, padding=1), IMAGE),
    int8("conv2d_of_tensor", lambda: nn.Conv2d(6, 8, 3), IMAGE, recipe="static_of_tensor"),
    int8("conv2d_relu", lambda: nn.Sequential(nn.Conv2d(6, 8, 3, 2), nn.ReLU()), IMAGE),
    int8("conv2d_grouped", lambda: nn.Conv2d(6, 8, 3, groups=2), IMAGE),
    int8("conv2d_depthwise", lambda: nn.Conv2d(6, 12, 3, groups=6, padding=1), IMAGE),
    int8("conv1d", lambda: nn.Conv1d(6, 8, 3), (2, 6, 11)),
    int8("conv_transpose2d", lambda: nn.ConvTranspose2d(6, 8, 3, 2, 1, 1), IMAGE),
    int8("conv_transpose2d_grouped", lambda: nn.ConvTranspose2d(6, 8, 3, 2, groups=2), IMAGE),
    int8("linear", lambda: nn.Linear(8, 5), ROWS),
    int8("linear_of_tensor", lambda: nn.Linear(8, 5), ROWS, recipe="static_of_tensor"),
    int8("linear_relu", lambda: nn.Sequential(nn.Linear(8, 5, bias=False), nn.ReLU()), ROWS),
    *(
        int8(name, lambda name=name: Call(getattr(torch, name)), ROWS, ROWS)
        for name in ("add", "sub", "mul")
    ),
    int8("add_constant", lambda: With(torch.add, (5, 1)), ROWS),
    int8(
        "add_of_layouts",
        lambda: Call(lambda f, x, y: f(x) + y, nn.Conv2d(6, 4, 1)),
        IMAGE,
        (4, 9, 1),
    ),
    *(
        int8(name, lambda name=name: Call(getattr(F, name)), ROWS)
        for name in ("sigmoid", "tanh", "leaky_relu", "elu", "relu")
    ),
    *(
        int8(name, lambda name=name: Call(getattr(F, name)), ROWS, recipe="all", tol=tol)
        for name, tol in (("hardswish", STEP), ("gelu", STEP), ("silu", 2 * STEP))
    ),
    int8("max_pool", lambda: nn.Sequential(nn.Conv2d(6, 4, 1), nn.MaxPool2d(2)), IMAGE),
    int8("avg_pool", lambda: nn.Sequential(nn.Conv2d(6, 4, 1), nn.AvgPool2d(2)), IMAGE),
    *(
        int8(
            f"pool_{name}",
            lambda pool=pool: nn.Sequential(nn.Conv2d(6, 4, 1), pool),
            (2, 6, 12, 9),
            recipe="all",
        )
        for name, pool in (
            ("avg", nn.AvgPool2d(3, 2)),
            ("avg_padded", nn.AvgPool2d((3, 2), 2, 1)),
            ("avg_of_inner", nn.AvgPool2d(3, 2, 1, count_include_pad=False)),
            ("adaptive", nn.AdaptiveAvgPool2d((4, 3))),
            ("adaptive_to_one", nn.AdaptiveAvgPool2d(1)),
        )
    ),
    int8("hardsigmoid", lambda: Call(F.hardsigmoid), ROWS, recipe="all", tol=STEP),
    *(
        int8(name, lambda call=call: Call(lambda f, x: call(f(x)), nn.Linear(8, 8)), ROWS)
        for name, call in (
            ("add_number", lambda x: x + 0.3),
            ("add_small_number", lambda x: x + 1e-4),
            ("sub_number", lambda x: x - 1.5),
            ("mul_number", lambda x: x * -2.7),
            ("mul_nothing", lambda x: x * 0.0),
            ("rsub_number", lambda x: 1 - x),
        )
    ),
    *(
        int8(f"{name}_far_apart", lambda call=call: Call(call), ROWS, recipe="all", tol=2 * STEP)
        for name, call in (
            ("leaky_relu", lambda x: F.leaky_relu((x * 100).clamp(max=0.0), 1e-3)),
            ("silu", lambda x: F.silu(x - 15)),
            ("mul", lambda x: (x * 1e-3) * (x * 1e-3) + 5.0),
            ("add", lambda x: x * 300 + x * 1e-3),
            ("cat", lambda x: torch.cat([x, x * 1e-3])),
        )
    ),
    int8("largest", lambda: Call(lambda f, x: f(x).amax((2, 3)), nn.Conv2d(6, 4, 1)), IMAGE),
    int8("mean", lambda: nn.Sequential(nn.Conv2d(6, 4, 1), nn.AdaptiveAvgPool2d(1)), IMAGE),
    int8("mean_of_rows", lambda: Call(lambda f, x: f(x).mean(1), nn.Linear(8, 8)), ROWS),
    int8("cat", lambda: Call(lambda f, x: torch.cat([f(x), x], 1), nn.Conv2d(6, 4, 1)), IMAGE),
    int8("slice", lambda: Call(lambda f, x: f(x)[:, 1:3], nn.Conv2d(6, 4, 1)), IMAGE),
    int8("pad", lambda: Call(lambda f, x: F.pad(f(x), (1, 1)), nn.Conv2d(6, 4, 1)), IMAGE),
    int8(
        "bilinear",
        lambda: nn.Sequential(nn.Conv2d(6, 4, 1), nn.Upsample(scale_factor=2, mode="bilinear")),
        IMAGE,
        tol=1.15 * STEP,  # one step of its input's scale, whose range is wider; two are refused
    ),
    int8(
        "patches",
        lambda: Call(
            lambda f, g, x: g(f(x).flatten(2).transpose(1, 2)), nn.Conv2d(6, 8, 3), nn.Linear(8, 5)
        ),
        IMAGE,
    ),
    int8(
        "attention",
        lambda: Call(lambda f, x: F.scaled_dot_product_attention(f(x), x, x), nn.Linear(8, 8)),
        Q,
    ),
    *DYNAMIC_INT8,
]

PAST = (1, 2, 9, 16)
SHORT, LONG = (1, 2, 2, 16), (1, 2, 40, 16)
MODELS = [
    layer("vision_transformer", VisionTransformer, (2, 3, 32, 32)),
    layer(
        "vision_transformer_dynamic",
        VisionTransformer,
        (2, 3, 32, 32),
        recipe="dynamic",
        tol=3 * STEP,
    ),
    layer("llama_step", LlamaStep, (1, 1, 64), (2, 1, 8), *[PAST] * 4, tol=1e-4),
    layer(
        "llama_step_of_any_past",
        LlamaStep,
        (1, 1, 64),
        (2, 1, 8),
        *[PAST] * 4,
        dynamic=(None, None, ({2: torch.export.Dim("past", min=2, max=63)},) * 4),
        calls=[[(1, 1, 64), (2, 1, 8), *[past] * 4] for past in (SHORT, LONG)],
        tol=1e-4,
    ),
    layer(
        "llama_step_groups4",
        LlamaStep,
        (1, 1, 64),
        (2, 1, 8),
        *[PAST] * 4,
        recipe="groups4",
        tol=STEP,
    ),
]

FLOAT = [
    *ELEMENTWISE,
    *BINARY,
    *CONVOLUTIONS,
    *PRODUCTS,
    *ATTENTION,
    *NORMS,
    *POOLS,
    *SHAPES,
    *CHOICES,
    *DYNAMIC,
]
HALF_STEPS = 2e-3
"""Four steps of the result's largest number."""

WIDE = (2, 4000)
LARGE = [
    layer("norm_of_large", lambda: Call(lambda f, x: f(x * 500), nn.LayerNorm(8)), ROWS),
    function("softmax_of_wide_rows", lambda x: x.softmax(-1), WIDE),
    function("sum_of_wide_rows", lambda x: (x * 9 + 7).sum(-1), WIDE),
    function("avg_pool_of_large", lambda x: F.avg_pool2d(x.abs() * 9000, 3), IMAGE),
    function("through_float", lambda x: (x.float().exp() + 1).half() * 2, ROWS),
]
"""Sums and squares of these are beyond float16, or their terms below one of its steps."""

HALF = [in_half(case, HALF_STEPS) for case in (*FLOAT, *MODELS[:1], *LARGE)]

CASES: list[Case] = [*FLOAT, *HIDDEN, *INT8, *MODELS, *HALF]
BY_NAME = {case.name: case for case in CASES}
assert len(BY_NAME) == len(CASES)
