# SPDX-License-Identifier: BSD-3-Clause
"""The differences that stay, each with its reason and what must hold where it is the reason."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from differential.calls import Call
from differential.compare import FEW, UNITS, difference
from differential.operators import eager_of, exact

NARROW = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Row:
    """A kind of difference: kernels by a pattern of their names, and a test of one call."""

    name: str
    kernels: str
    reason: str
    holds: Callable[[Call], bool]
    least: int = 1
    """How many of 50,000 calls must differ so; fewer: the row has to go. 0: seen less often."""
    outcome: str = "differs"

    def explains(self, call: Call) -> bool:
        named = re.fullmatch(self.kernels, call.kernel.name) and call.outcome == self.outcome
        return bool(named) and self.holds(call)


def anything(_: Call) -> bool:
    return True


def is_empty(call: Call) -> bool:
    return any(t.numel() == 0 for t in call.tensors)


def sizes(call: Call) -> list[float]:
    floats = [t for t in call.tensors if t.is_floating_point() or t.is_complex()]
    return [float(t.abs().nan_to_num(torch.inf).max()) for t in floats if t.numel()]


def overflows(call: Call) -> bool:
    """An operand is infinite, no number, or so large that its square is."""
    limits = [torch.finfo(t.dtype).max ** 0.5 for t in call.tensors if t.is_floating_point()]
    complexes = [1e19 for t in call.tensors if t.is_complex()]
    return max(sizes(call), default=0.0) >= min([*limits, *complexes, 1e19])


def other_pattern(call: Call) -> bool:
    """Infinities and NaN lie elsewhere, or finite numbers lost their digits next to them."""
    return overflows(call)


def points_at_values(call: Call) -> bool:
    """Both name elements of self, with the same values; which of equal ones is left open."""
    if call.results[0].shape != call.expected[0].shape:
        return False
    x, dim = call.args[0], next(a for a in call.args[1:][::-1] if type(a) is int)
    if call.kernel.name == "aten::topk.values":
        dim = call.args[2]
    values, indices = call.results
    if x.dim() == 0:
        return False
    picked = x.take_along_dim(indices, dim)
    wanted = call.expected[0].sort(dim)[0]
    distinct = indices.sort(dim)[0].diff(dim=dim).ne(0).all()
    same = difference(values.sort(dim)[0] + 0, wanted + 0, None, True) is None
    return same and bool(distinct) and difference(values, picked, None, True) is None


def transform_cancels(call: Call) -> bool:
    """What differs is a few steps of the largest element, for each element."""
    got, want = (
        torch.view_as_real(t) if t.is_complex() else t
        for t in (call.results[0], call.expected[0].resolve_conj())
    )
    if not torch.equal(got.isfinite(), want.isfinite()):
        return False
    off = (got.double() - want.double()).abs().nan_to_num(0)
    size = max(sizes(call), default=1.0) * call.args[0].numel()
    return bool((off <= 8 * UNITS[want.dtype] * size).all())


def named_twice(call: Call) -> bool:
    """Each element is that of self or one of the values."""
    values = call.args[2].flatten()
    got, want = call.results[0], call.expected[0]
    differ = (got != want) & ~(got.isnan() & want.isnan())
    return all(bool((values == v).any()) or bool(v != v) for v in got[differ].flatten()[:50])


def zero_signs(call: Call) -> bool:
    return call.detail.endswith("the sign of zero differs")


def alone(call: Call) -> bool:
    """Eager, given the elements that differ one at a time, agrees."""
    if len(call.results) != 1:
        return False
    got, want = call.results[0], call.expected[0]
    given = [a.expand(got.shape) if isinstance(a, torch.Tensor) else a for a in call.args]
    where = ((got != want) & ~(got.isnan() & want.isnan())).nonzero().tolist()
    for place in map(tuple, where[:20]):
        one = [g[place].clone() if isinstance(g, torch.Tensor) else g for g in given]
        if difference(got[place], eager_of(call.kernel.name)(one, call.dtype)[0], None):
            return False
    return True


def nearer(call: Call) -> bool:
    """What the kernel computes is the exact result, rounded; eager's is not."""
    truth = exact(call.kernel, call.args, call.dtype)
    if truth is None:
        return False
    return all(is_rounded(a, t) for a, t in zip(call.results, truth, strict=True))


def is_rounded(actual: Any, truth: Any) -> bool:
    if not isinstance(actual, torch.Tensor) or not actual.is_floating_point():
        return difference(actual, truth, None) is None
    rounded = truth.to(actual.dtype).double()
    got = actual.double()
    unit = 2 * UNITS[actual.dtype] * max(FEW[actual.dtype], 2)
    off = (got - rounded).abs() <= unit * rounded.abs() + torch.finfo(actual.dtype).tiny
    return bool((off | (got == rounded) | (got.isnan() & rounded.isnan())).all())


def without_onednn(call: Call) -> bool:
    with torch.backends.mkldnn.flags(enabled=False):
        want = eager_of(call.kernel.name)(call.args, call.dtype)
    truth = exact(call.kernel, call.args, call.dtype)
    return difference(call.results[0], want[0], truth[0] if truth else None) is None


def channels_last_agrees(call: Call) -> bool:
    channels = call.args[0].shape[1]
    x = call.args[0].repeat(1, 2, 1, 1).contiguous(memory_format=torch.channels_last)
    (want,) = eager_of(call.kernel.name)([x, *call.args[1:]], call.dtype)
    scale = max(sizes(call), default=1.0)
    return difference(call.results[0], want[:, :channels].contiguous(), None, scale=scale) is None


def shifts_cancel(call: Call) -> bool:
    """What differs is a few steps of the terms, not of their sum."""
    dtype = call.expected[0].dtype
    size = math.prod(max(1.0, s) for s in sizes(call)) / max(call.args[-1], 1e-12) ** 0.5
    off = (call.results[0].double() - call.expected[0].double()).abs().nan_to_num(0)
    return bool((off <= 8 * UNITS[dtype] * size).all())


def fused(call: Call) -> bool:
    """The results differ by a step of what is added, which may cancel."""
    dtype = call.expected[0].dtype
    if not dtype.is_floating_point:
        return False
    numbers = [abs(float(a)) for a in call.args if isinstance(a, (int, float))]
    size = max(*numbers, *sizes(call), 1.0) * max(1.0, abs(call.args[-1]))
    if size > torch.finfo(dtype).max:
        return True
    off = (call.results[0].double() - call.expected[0].double()).abs().nan_to_num(0)
    return bool((off <= 4 * UNITS[dtype] * size).all())


NORMS = r"aten::(native_(layer|group)_norm\.out|_native_batch_norm_legit\w*\.\w+|var\w*\.\w+)"
SUMS = (
    r"aten::(convolution\w*|mm|bmm|addmm|linear|_fft_\w+|_[cp]dist_forward|mean|sum|cumsum|prod"
    r"|_upsample_bilinear2d_aa|upsample_bilinear2d|grid_sampler_2d|avg_pool2d|_adaptive_avg_pool2d"
    r"|scatter_add|index_put_?)(\.\w+)?"
)
FUNCTIONS = (
    r"aten::(a?(cos|sin|tan)h?|atan2|erfc?|exp|expm1|log\w*|rsqrt|sqrt|sigmoid|pow|gelu|elu|hypot"
    r"|_(log_)?softmax|glu|logit|reciprocal)\.\w+"
)

ROWS: tuple[Row, ...] = (
    Row(
        "ties",
        r"aten::(topk\.values|sort\.values(_stable)?)",
        "which of equal elements, and with `sorted=False` in which order, eager leaves open; "
        "values are the same, indices point at them, and `stable=True` is equal",
        lambda c: points_at_values(c) and not (len(c.args) == 4 and c.args[1] is True),
        5,
    ),
    Row(
        "zeros",
        r"aten::(topk|sort|amin|amax|min|max|minimum|maximum|clamp|hardtanh|max_pool2d\w*)\.\w+",
        "of -0.0 and 0.0, which are equal, eager's vector and scalar loops keep different ones",
        zero_signs,
    ),
    Row(
        "no elements of topk",
        r"aten::topk\.values",
        "`k=0` of a 0-dim tensor: eager returns self",
        lambda c: c.args[0].dim() == 0 and c.args[1] == 0,
    ),
    Row(
        "vectors",
        r"aten::(fmod|remainder|floor_divide|div|sinh|cosh|tanh|pow)\.\w+",
        "eager's vector loop differs from its loop of single elements, which agrees: `fmod` of "
        "subnormal divisors is NaN there",
        alone,
        3,
    ),
    Row(
        "exact",
        rf"{FUNCTIONS}|{NORMS}|{SUMS}",
        "the kernel gives the exact result, rounded; eager overflows or loses digits on the way",
        nearer,
        5,
    ),
    Row(
        "infinities",
        rf"{NORMS}|{SUMS}",
        "sums with infinities, NaN, or numbers that overflow when squared: the order, and what "
        "zero padding times infinity gives, differ between eager's own algorithms as well",
        other_pattern,
        5,
    ),
    Row(
        "oneDNN",
        r"aten::(gelu\.out|convolution\.out)",
        "oneDNN's result; eager without it agrees",
        without_onednn,
        0,
    ),
    Row(
        "empty pixels",
        r"aten::pixel_unshuffle\.out",
        "eager returns self's shape where self has no elements",
        is_empty,
    ),
    Row(
        "unchecked",
        r"aten::(convolution(_backward)?|b?mm|addmm|linear|as_strided_copy|cat|index_put_?)(\.out)?",
        "eager does not check dtypes, strides and offsets of what has no elements, nor dtypes of "
        "some products",
        anything,
        outcome="strict",
    ),
    Row(
        "one column",
        r"aten::_upsample_bilinear2d_aa\.out",
        "eager's contiguous loop repeats a row where the height or width of the result is 1; its "
        "channels-last loop agrees",
        channels_last_agrees,
    ),
    Row(
        "shifted scales",
        NORMS,
        "scale times x plus a shift, as eager computes it too: the terms may cancel",
        shifts_cancel,
        0,
    ),
    Row(
        "named twice",
        r"aten::index_put_?(\.out)?",
        "which of the values put at one place stays, eager leaves open",
        lambda c: c.args[-1] is False and named_twice(c),
        0,
    ),
    Row(
        "largest of nothing",
        r"aten::max_pool2d_with_indices\.out",
        "of a window without elements, which dilation makes: eager gives the "
        "least integer and an index outside, the kernel 0",
        lambda c: max(c.args[4]) > 1,
        0,
    ),
    Row(
        "quotients beyond 2^53",
        r"executorch_prim::(truediv|floordiv|mod)\.\w+",
        "of integers, which a double does not hold: Python divides exactly, the kernel as doubles",
        lambda c: max(map(abs, c.args[:2])) > 2**53,
        0,
    ),
    Row(
        "transforms",
        r"aten::_fft_(r2c|c2r)\.out",
        "sums of many terms, which may cancel: within steps of the terms",
        transform_cancels,
        0,
    ),
    Row(
        "long exponents",
        r"aten::pow\.\w+",
        "exponents of 2^24 and more, of which float32 does not hold whether they are odd",
        lambda c: abs(c.args[1]) >= 2**24 if isinstance(c.args[1], float) else False,
        0,
    ),
    Row(
        "scaled operands",
        r"aten::(r?sub|add)\.\w+",
        "`alpha` times an operand: eager's vector loop rounds once, its loop of single elements "
        "twice; the kernel once",
        lambda c: c.args[-1] != 1 and fused(c),
        3,
    ),
    Row(
        "per token",
        r"quantized_decomposed::(choose_qparams_per_token_asymmetric|(de)?quantize_per_token)\.out",
        "computed in float32; eager computes in the dtype of the input or the scales",
        lambda c: any(t.dtype not in (torch.float32, torch.int8) for t in c.tensors),
        3,
    ),
    Row(
        "no quantized number",
        r"quantized_decomposed::(choose_qparams|quantize)\w*\.\w+",
        "NaN has none: the kernel gives `quant_min`, eager what converting it gives; and "
        "infinities have no scale",
        lambda c: not c.args[0].isfinite().all(),
    ),
    Row(
        "cropping pads",
        r"aten::(reflection|replication)_pad\dd\.out",
        "where one side is cropped and the other padded by more than is left, the kernel refuses",
        lambda c: min(c.args[1]) < 0,
        outcome="strict",
    ),
    Row(
        "division by -1",
        r"aten::(div|floor_divide|fmod|remainder)\.\w+",
        "the smallest int32 or int64 divided by -1 ends eager's process (SIGFPE); the kernel wraps",
        anything,
        0,
        "aborted",
    ),
    Row(
        "complex to real",
        r"aten::_to_copy\.out",
        "no conversion between complex and other dtypes; the compiler refuses it",
        lambda c: any(t.is_complex() for t in c.tensors + c.floats()),
        outcome="strict",
    ),
    Row(
        "bounds beyond int64",
        r"aten::hardtanh\.out",
        "a floating bound beyond the integers: what it converts to is not defined",
        lambda c: any(abs(b) >= 2.0**63 for b in c.args[1:] if isinstance(b, float)),
        0,
    ),
)


def explain(call: Call) -> Row | None:
    """Return the row that names the reason of a difference."""
    return next((row for row in ROWS if row.explains(call)), None)
