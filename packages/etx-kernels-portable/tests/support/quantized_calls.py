# SPDX-License-Identifier: BSD-3-Clause
"""Which dtypes the arguments of quantized and integer kernels may have: calls that run, and all
that is near.

No sample of PyTorch reaches them. Each pair of tensors has every dtype in turn, while the rest is
of dtypes that fit, the floating ones of one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from dtypes import BY_NAME, dtype_name, row_of
from harness import PLUGIN, KernelError, Out
from integer_calls import INTEGER_CALLS

X, Q = torch.ones(2, 4), torch.ones(2, 4, dtype=torch.int8)
BYTES = torch.ones(2, 4, dtype=torch.uint8)
ONE, ZERO, ROWS, ZEROS = torch.ones(1), torch.zeros(1).long(), torch.ones(2), torch.zeros(2).long()
TOKENS = torch.ones(2, 1).double(), torch.zeros(2, 1).long()
INDICES = torch.tensor([0, 1])
RANGE = (0, 100)
SAME = {"given": 0, "result": -1}
"""A dtype as an argument: that of the first tensor or that of the result."""
SIDE = (0.5, 0, *RANGE)
CALLS: dict[str, tuple[str, tuple[Any, ...], tuple[Out, ...]]] = {
    "quantize_per_tensor.out": (
        "input scale zero_point quant_min quant_max dtype out",
        (X, 0.5, 0, *RANGE, "result"),
        (Out([2, 4], torch.int8),),
    ),
    "quantize_per_tensor.Tensor_out": (
        "input scale zero_point quant_min quant_max dtype out",
        (X, ONE, ZERO, *RANGE, "result"),
        (Out([2, 4], torch.int8),),
    ),
    "quantize_per_channel.out": (
        "input scales zero_points axis quant_min quant_max dtype out",
        (X, ROWS, ZEROS, 0, *RANGE, "result"),
        (Out([2, 4], torch.int8),),
    ),
    "quantize_per_token.out": (
        "input scales zero_points quant_min quant_max dtype out",
        (X, *TOKENS, *RANGE, "result"),
        (Out([2, 4], torch.int8),),
    ),
    "dequantize_per_tensor.out": (
        "input scale zero_point quant_min quant_max dtype out_dtype out",
        (Q, 0.5, 0, *RANGE, "given", "result"),
        (Out([2, 4], torch.float32),),
    ),
    "dequantize_per_tensor.Tensor_out": (
        "input scale zero_point quant_min quant_max dtype out_dtype out",
        (Q, ONE, ZERO, *RANGE, "given", "result"),
        (Out([2, 4], torch.float32),),
    ),
    "dequantize_per_channel.out": (
        "input scales zero_points axis quant_min quant_max dtype out_dtype out",
        (Q, ROWS, ZEROS, 0, *RANGE, "given", "result"),
        (Out([2, 4], torch.float32),),
    ),
    "dequantize_per_token.out": (
        "input scales zero_points quant_min quant_max dtype output_dtype out",
        (Q, *TOKENS, *RANGE, "given", "result"),
        (Out([2, 4], torch.float32),),
    ),
    "choose_qparams.Tensor_out": (
        "input quant_min quant_max eps dtype out0 out1",
        (X, *RANGE, 1e-7, torch.int8),
        (Out([1], torch.float64), Out([1], torch.int64)),
    ),
    "choose_qparams_per_token_asymmetric.out": (
        "input dtype out0 out1",
        (X, torch.int8),
        (Out([2, 1], torch.float64), Out([2, 1], torch.int64)),
    ),
    "add.out": (
        "a a_scale a_zero_point a_quant_min a_quant_max b b_scale b_zero_point b_quant_min "
        "b_quant_max out_scale out_zero_point out_quant_min out_quant_max out",
        (Q, *SIDE, Q, *SIDE, *SIDE),
        (Out([2, 4], torch.int8),),
    ),
    "mixed_mm.out": (
        "input weight weight_scales weight_zero_points out",
        (X, Q.reshape(4, 2), torch.ones(4), torch.zeros(4)),
        (Out([2, 2], torch.float32),),
    ),
    "mixed_linear.out": (
        "input weight weight_scales weight_zero_points dtype out",
        (X, Q, ROWS, ROWS, "result"),
        (Out([2, 2], torch.float32),),
    ),
}
for bits, weight in (("byte", Q), ("4bit", BYTES), ("2bit", BYTES)):
    length = {"byte": 4, "4bit": 8, "2bit": 16}[bits]
    for overload, named, given in (("out", "", ()), ("dtype_out", "dtype ", ("result",))):
        CALLS[f"embedding_{bits}.{overload}"] = (
            f"weight weight_scales weight_zero_points quant_min quant_max indices {named}out",
            (weight, ROWS, ROWS, *RANGE, INDICES, *given),
            (Out([2, length], torch.float32),),
        )
HEAD = torch.ones(1, 2, 4)
KERNELS = {f"quantized_decomposed::{name}": call for name, call in CALLS.items()} | INTEGER_CALLS
KERNELS["etx::attention.out"] = (
    "query key value mask shape scale is_causal out",
    (HEAD, HEAD, HEAD, torch.ones(2, 2), [], 0.5, False),
    (Out([1, 2, 4], torch.float32),),
)
KERNELS["etx::bmm_nt.out"] = ("self mat2 out", (HEAD, HEAD), (Out([1, 2, 2], torch.float32),))
KERNELS["etx::max_pool2d.out"] = (
    "self kernel_size stride padding dilation ceil_mode out",
    (torch.ones(1, 2, 4, 4), [2, 2], [2, 2], [0, 0], [1, 1], False),
    (Out([1, 2, 2, 2], torch.float32),),
)
KERNELS["etx::polynomial.out"] = (
    "self coefficients out",
    (torch.ones(2, 4, dtype=torch.float64), [1.0, 0.5]),
    (Out([2, 4], torch.float64),),
)
NARROW = torch.ones(2, 4, dtype=torch.bfloat16)
KERNELS["etx::narrow_linear.out"] = (
    "input weight bias out",
    (X, NARROW, ROWS),
    (Out([2, 2], torch.float32),),
)
KERNELS["etx::narrow_conv.out"] = (
    "input weight bias stride padding dilation groups out",
    (torch.ones(1, 4, 3, 3), NARROW[..., None, None], ROWS, [1, 1], [0, 0], [1, 1], 1),
    (Out([1, 2, 3, 3], torch.float32),),
)
STEPS, PAIR = torch.ones(3, 2, 4), torch.ones(2, 2)
for name, gates, more in (("lstm", 4, ()), ("gru", 3, ()), ("rnn", 1, (False,))):
    biases = torch.ones(2 * gates), torch.ones(2 * gates)
    weights = (torch.ones(2 * gates, 4), torch.ones(2 * gates, 2), *biases)
    outs = (Out([3, 2, 2], torch.float32),)
    tensors: tuple[Any, ...] = (STEPS, PAIR, *weights)
    named = "input state input_weight weight input_bias bias is_batch_first is_reverse "
    named += "is_relu out" if more else "out"
    if name == "lstm":
        tensors, outs = (STEPS, PAIR, PAIR, *weights, PAIR), (*outs, Out([2, 2], torch.float32))
        named = "input state cells input_weight weight input_bias bias projection is_batch_first "
        named += "is_reverse out0 out1"
    KERNELS[f"etx::{name}.out"] = (named, (*tensors, False, False, *more), outs)


REAL = ["float32", "float16", "bfloat16", "float64", "uint8", "int8", "int16", "int32", "int64"]
BASES = {"etx::bmm_nt.out": REAL}
"""What all operands may be together, where that is more than floats."""
TOGETHER = {"etx::weight_only_lstm.out": ("projection", "projection_scales")}
"""Operands that are none together."""


def quantized_rows() -> dict[str, dict[str, Any]]:
    """Return what each quantized kernel takes."""
    return {kernel: row(kernel) for kernel in KERNELS}


def row(kernel: str) -> dict[str, Any]:
    names, args, outs = KERNELS[kernel]
    whole = [*args, *outs]
    places = [i for i, value in enumerate(whole) if isinstance(value, (torch.Tensor, Out))]
    found: dict[tuple[str, ...], bool] = {}
    for kinds in tried(kernel, whole, places):
        if kinds not in found:
            found[kinds] = runs(kernel, whole, kinds, places)
    return row_of(names.split(), found)


def tried(kernel: str, whole: list[Any], places: list[int]) -> Iterator[tuple[str, ...]]:
    parameters = PLUGIN.kernels[kernel].parameters
    floating = [i for i in places if whole[i].dtype == torch.float32]
    bases = BASES.get(kernel, ("float32", "float16", "bfloat16"))
    absent = {KERNELS[kernel][0].split().index(name) for name in TOGETHER.get(kernel, ())}
    for base, without in itertools.product(bases, (set(), absent)):
        fits = [dtype_name(whole[i].dtype) if i in places else "" for i in range(len(whole))]
        for place in floating:
            fits[place] = base
        for place in without:
            fits[place] = "none"
        for first, second in itertools.combinations_with_replacement(places, 2):
            for one, other in itertools.product(*(domain(parameters[i]) for i in (first, second))):
                kinds = list(fits)
                kinds[first], kinds[second] = one, other
                yield tuple(kinds)


def domain(parameter: Any) -> tuple[str, ...]:
    return (*BY_NAME, "none") if parameter.optional else tuple(BY_NAME)


def runs(kernel: str, whole: list[Any], kinds: tuple[str, ...], places: list[int]) -> bool:
    values = []
    for value, kind in zip(whole, kinds, strict=True):
        if isinstance(value, str):
            given = BY_NAME.get(kinds[SAME[value]])
        elif kind == "none":
            given = None
        elif isinstance(value, torch.Tensor):
            given = value.to(BY_NAME[kind])
        else:
            given = Out(value.shape, BY_NAME[kind]) if isinstance(value, Out) else value
        values.append(given)
    try:
        PLUGIN.call(kernel, *values)
    except KernelError:
        return False
    return True
