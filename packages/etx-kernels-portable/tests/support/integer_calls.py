# SPDX-License-Identifier: BSD-3-Clause
"""A call of each integer operator that runs: the names of its arguments, and what they may be."""

from __future__ import annotations

from typing import Any

import torch
from arguments import Out
from integer_reference import pack_groups

COLUMNS, DEPTH = 3, 8
X, IMAGE = torch.ones(2, DEPTH, dtype=torch.int8), torch.ones(1, 3, 4, 8, dtype=torch.int8)
FLOATS = torch.ones(2, DEPTH)
PACKED = torch.ones(1, 2, 16, 4, dtype=torch.int8)
NIBBLES = torch.ones(1, 1, 16, 4, dtype=torch.uint8)
TAPS = torch.ones(1, 8, dtype=torch.int8)
SUMS, SCALES = torch.full((COLUMNS,), DEPTH, dtype=torch.int32), torch.ones(COLUMNS)
CHANNELS = torch.ones(8, dtype=torch.int32), None, torch.ones(8)
POINTS = torch.tensor([[0, 512], [2, 0]], dtype=torch.int32)
RANGE_OF_IMAGE = torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
OUTPUT = (0, -128, 127)
RANGE = "output_zero_point output_min output_max out"
LISTS = "kernel_size stride padding dilation"
MOVES = ([1, 1], [1, 1], [0, 0, 0, 0], [1, 1])
LINEAR = "input weight weight_sums bias scale"
LIMITS = "output_min output_max"


def int8(*shape: int) -> tuple[Out, ...]:
    return (Out(shape, torch.int8),)


def float32(*shape: int) -> tuple[Out, ...]:
    return (Out(shape, torch.float32),)


INTEGER_CALLS: dict[str, tuple[str, tuple[Any, ...], tuple[Out, ...]]] = {
    "etx::quantized_linear.out": (
        f"{LINEAR} input_zero_point {RANGE}",
        (X, PACKED, SUMS, SUMS, SCALES, 0, *OUTPUT),
        int8(2, COLUMNS),
    ),
    "etx::quantized_conv.out": (
        f"{LINEAR} {LISTS} spacing groups input_zero_point {RANGE}",
        (IMAGE, PACKED, SUMS, SUMS, SCALES, *MOVES, [1, 1], 1, 0, *OUTPUT),
        int8(1, 3, 4, COLUMNS),
    ),
    "etx::quantized_depthwise_conv.out": (
        f"{LINEAR} {LISTS} input_zero_point {RANGE}",
        (IMAGE, TAPS, CHANNELS[0], CHANNELS[0], CHANNELS[2], *MOVES, 0, *OUTPUT),
        int8(1, 3, 4, 8),
    ),
    "etx::quantized_add.out": (
        f"a b a_scale a_zero_point b_scale b_zero_point {RANGE}",
        (X, X, 0.5, 0, 0.5, 0, *OUTPUT),
        int8(2, DEPTH),
    ),
    "etx::quantized_mul.out": (
        f"a b scale a_zero_point b_zero_point {RANGE}",
        (X, X, 0.5, 0, 0, *OUTPUT),
        int8(2, DEPTH),
    ),
    "etx::quantized_avg_pool.out": (
        f"input kernel_size stride padding count_include_pad scale input_zero_point {RANGE}",
        (IMAGE, *MOVES[:3], True, 0.5, 0, *OUTPUT),
        int8(1, 3, 4, 8),
    ),
    "etx::quantized_mean.out": (
        f"input dim keepdim scale input_zero_point {RANGE}",
        (IMAGE, [1, 2], False, 0.5, 0, *OUTPUT),
        int8(1, 8),
    ),
    "etx::quantized_interpolate.out": (
        f"input rows columns scale input_zero_point {RANGE}",
        (IMAGE, POINTS, POINTS, 0.5, 0, *OUTPUT),
        int8(1, 2, 2, 8),
    ),
    "etx::quantized_max_pool.out": (f"input {LISTS} out", (IMAGE, *MOVES), int8(1, 3, 4, 8)),
    "etx::lookup.out": (
        "input table out",
        (X, torch.ones(256, dtype=torch.int8)),
        int8(2, DEPTH),
    ),
    "etx::dynamic_linear.out": (
        f"input weight weight_sums weight_scales bias {LIMITS} out",
        (FLOATS, PACKED, SUMS, SCALES, SCALES, -1.0, 1.0),
        float32(2, COLUMNS),
    ),
    "etx::dynamic_conv.out": (
        f"input input_scale input_zero_point weight weight_sums weight_scales bias {LISTS} spacing"
        f" groups {LIMITS} out",
        (IMAGE, *RANGE_OF_IMAGE, PACKED, SUMS, SCALES, SCALES, *MOVES, [1, 1], 1, -1.0, 1.0),
        float32(1, 3, 4, COLUMNS),
    ),
    "etx::dynamic_linear_int4.out": (
        f"input weight weight_sums weight_scales bias group_size out_features {LIMITS} out",
        (
            FLOATS,
            NIBBLES,
            *map(pack_groups, (SUMS[None], SCALES[None])),
            SCALES,
            DEPTH,
            COLUMNS,
            -1.0,
            1.0,
        ),
        float32(2, COLUMNS),
    ),
    "etx::weight_only_linear.out": (
        f"input weight weight_scales bias {LIMITS} out",
        (FLOATS, PACKED, SCALES, SCALES, -1.0, 1.0),
        float32(2, COLUMNS),
    ),
    "etx::weight_only_linear_int4.out": (
        f"input weight weight_scales bias group_size out_features {LIMITS} out",
        (FLOATS, NIBBLES, pack_groups(SCALES[None]), SCALES, DEPTH, COLUMNS, -1.0, 1.0),
        float32(2, COLUMNS),
    ),
}
SIDE = 4
SEQUENCES, STATES = torch.ones(2, 2, SIDE), torch.ones(2, SIDE)
for name, gates, more in (("lstm", 4, ()), ("gru", 3, ()), ("rnn", 1, (False,))):
    rows = gates * SIDE
    matrix = torch.ones(1, 1, 16, 4, dtype=torch.int8), torch.ones(1, 1, 16)
    weights: tuple[Any, ...] = (*matrix, *matrix, torch.ones(rows), torch.ones(rows))
    names, given, outs = "input state", (SEQUENCES, STATES), float32(2, 2, SIDE)
    last = "is_batch_first is_reverse " + ("is_relu out" if more else "out")
    if name == "lstm":
        names, given, outs = f"{names} cells", (*given, STATES), (*outs, *float32(2, SIDE))
        last = "projection projection_scales is_batch_first is_reverse out0 out1"
        weights += matrix
    names += f" input_weight input_scales weight scales input_bias bias {last}"
    INTEGER_CALLS[f"etx::weight_only_{name}.out"] = (
        names,
        (*given, *weights, False, False, *more),
        outs,
    )
