# SPDX-License-Identifier: BSD-3-Clause
"""The differences that stay, each with its reason and what must hold where it is the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from differential.calls import Call
from differential.compare import FEW, UNITS, difference
from differential.operators import eager_of, exact
from differential.reach import (
    CANCELS,
    REACHED,
    cancelling_terms,
    infinite_terms,
    shifts_cancel,
    without_terms,
)

NARROW = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Row:
    """A kind of difference: kernels by a pattern of their names, and a test of one call."""

    name: str
    kernels: str
    reason: str
    holds: Callable[[Call], bool]
    least: int = 1
    """How many of 50,000 calls must differ so; fewer: the row has to go. Not with an example."""
    outcome: str = "differs"
    example: tuple[str, int, int] | None = None
    """Kernel, seed and index of a call that differs so, in place of `least` where few do."""
    by_chance: bool = False
    """No call differs so each time."""
    capability: str = ""
    """Eager differs so in its loops for these processors only (torch's name of them); if given."""

    @property
    def is_seen_here(self) -> bool:
        return self.capability in ("", torch.backends.cpu.get_cpu_capability())

    def explains(self, call: Call) -> bool:
        named = re.fullmatch(self.kernels, call.kernel.name) and call.outcome == self.outcome
        return bool(named) and self.holds(call)


def is_empty(call: Call) -> bool:
    return any(t.numel() == 0 for t in call.tensors)


def sizes(call: Call) -> list[float]:
    floats = [t for t in call.tensors if t.is_floating_point() or t.is_complex()]
    return [float(t.abs().nan_to_num(torch.inf).max()) for t in floats if t.numel()]


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
    reference = call.expected[0].sort(dim)[0]
    distinct = indices.sort(dim)[0].diff(dim=dim).ne(0).all()
    same = difference(values.sort(dim)[0] + 0, reference + 0, None, True) is None
    return same and bool(distinct) and difference(values, picked, None, True) is None


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
    return infinite_terms(replace(call, expected=[want[:, :channels].contiguous()]))


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


NORMS = r"aten::(native_(layer|group)_norm\.out|_native_batch_norm_legit\w*\.\w+)"

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
        r"aten::(minimum|maximum|clamp|hardtanh|amin|amax|min|max)\.\w+",
        "of -0.0 and 0.0, which are equal, eager's vector and scalar loops keep different ones",
        lambda c: zero_signs(c) and c.expected[0].is_floating_point(),
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
    ),
    Row(
        "cancelling terms",
        rf"{CANCELS}|aten::var(_mean)?\.\w+",
        "a step of the sum of the terms' magnitudes (of transforms four), which cancel; in "
        "float16 and bfloat16 where eager rounds after each term; of squared distances where "
        "eager multiplies matrices, and of variances",
        cancelling_terms,
        example=("aten::sum.IntList_out", 104, 2994),
    ),
    Row(
        "named twice",
        r"aten::index_put_?(\.out)?",
        "which of the values put at one place stays, eager leaves open",
        lambda c: c.args[-1] is False and named_twice(c),
        example=("aten::index_put.out", 104, 6147),
    ),
    Row(
        "shifted scales",
        NORMS,
        "scale times x plus a shift, as eager computes it too: the terms may cancel",
        shifts_cancel,
        example=("aten::native_group_norm.out", 206, 1255),
    ),
    Row(
        "infinite terms",
        REACHED,
        "only elements differ that have a term which is infinite, no number, or so large that sums "
        "(of squares: norms, `var`, `cdist`) overflow: the order, and what zero padding times "
        "infinity gives, differ between eager's own algorithms as well",
        infinite_terms,
        5,
    ),
    Row(
        "no terms",
        r"aten::convolution_backward\.out",
        "of a tap that sees only padding oneDNN leaves in bfloat16 what the memory had; the "
        "kernel gives 0",
        lambda c: c.args[0].dtype == torch.bfloat16 and without_terms(c),
        by_chance=True,
    ),
    Row(
        "gelu of huge numbers",
        r"aten::gelu\.out",
        "beyond 1e19: eager's vector loop overflows on the way, or gives NaN of infinity",
        lambda c: max(sizes(c)) >= 1e19 and nearer(c),
        example=("aten::gelu.out", 201, 5246),
        capability="AVX512",
    ),
    Row(
        "logit near 1",
        r"aten::logit\.out",
        "of float16 and bfloat16: `1 - eps` is 1 in eager, which gives infinity; the kernel's "
        "result is the exact one, rounded",
        lambda c: c.expected[0].dtype in NARROW and nearer(c),
        example=("aten::logit.out", 201, 12152),
    ),
    Row(
        "oneDNN",
        r"aten::gelu\.out",
        "oneDNN's result; eager without it agrees",
        without_onednn,
        by_chance=True,
    ),
    Row(
        "empty pixels",
        r"aten::pixel_unshuffle\.out",
        "eager returns self's shape where self has no elements",
        is_empty,
    ),
    Row(
        "offsets of nothing",
        r"aten::as_strided_copy\.out",
        "eager does not check the offset of a view without elements",
        lambda c: 0 in c.args[1] and "storage_offset" in c.detail,
        outcome="strict",
    ),
    Row(
        "indices of nothing",
        r"aten::index(_put_?)?\.\w+|aten::index_put_",
        "eager does not check indices where nothing is selected",
        lambda c: is_empty(c) and "outside of the dimension" in c.detail,
        outcome="strict",
        example=("aten::index_put.out", 202, 2442),
    ),
    Row(
        "products of nothing",
        r"aten::(convolution(_backward)?|bmm)\.out",
        "eager does not check dtypes, strides and sizes of results where the batch has no "
        "elements, nor sizes where the input or the result has none",
        lambda c: any(t.numel() == 0 for t in [*c.tensors[:2], *c.expected[:1]]),
        outcome="strict",
    ),
    Row(
        "steps of 0",
        r"aten::convolution(_backward)?\.out",
        "eager does not check the dilation of a transposed convolution of single taps",
        lambda c: 1 in c.tensors[-1].shape[2:] and "stride and dilation" in c.detail,
        outcome="strict",
        example=("aten::convolution_backward.out", 201, 43127),
    ),
    Row(
        "other dtypes",
        r"aten::(convolution(_backward)?|linear)\.out",
        "eager does not check the dtype of a bias that it adds afterwards, nor of weights in some "
        "backward passes",
        lambda c: len({t.dtype for t in c.tensors}) > 1 and "same dtype" in c.detail,
        outcome="strict",
        example=("aten::convolution.out", 201, 118),
    ),
    Row(
        "dimensions of nothing",
        r"aten::cat\.out",
        "of vectors without elements, which eager leaves out, it does not check `dim`",
        lambda c: all(t.shape == (0,) for t in c.tensors),
        outcome="strict",
        example=("aten::cat.out", 201, 20213),
    ),
    Row(
        "one column",
        r"aten::_upsample_bilinear2d_aa\.out",
        "eager's contiguous loop repeats a row where the height or width of the result is 1; its "
        "channels-last loop agrees",
        channels_last_agrees,
        example=("aten::_upsample_bilinear2d_aa.out", 103, 6174),
    ),
    Row(
        "largest of nothing",
        r"aten::max_pool2d_with_indices\.out",
        "of a window without elements, which dilation makes: eager gives the "
        "least integer and an index outside, the kernel 0",
        lambda c: max(c.args[4]) > 1,
        example=("aten::max_pool2d_with_indices.out", 104, 12157),
    ),
    Row(
        "quotients beyond 2^53",
        r"executorch_prim::(truediv|floordiv|mod)\.\w+",
        "of integers, which a double does not hold: Python divides exactly, the kernel as doubles",
        lambda c: max(map(abs, c.args[:2])) > 2**53,
        example=("executorch_prim::truediv.Scalar", 201, 5099),
    ),
    Row(
        "long exponents",
        r"aten::pow\.\w+",
        "exponents of 2^24 and more, of which float32 does not hold whether they are odd",
        lambda c: abs(c.args[1]) >= 2**24 if isinstance(c.args[1], float) else False,
        example=("aten::pow.Tensor_Scalar_out", 203, 20086),
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
        "division by -1",
        r"aten::(div|floor_divide|fmod|remainder)\.\w+",
        "the smallest int32 or int64 divided by -1 ends eager's process (SIGFPE); the kernel wraps",
        lambda c: any(not t.is_floating_point() for t in c.tensors),
        outcome="aborted",
        example=("aten::div.Scalar_mode_out", 107, 6752),
    ),
    Row(
        "bounds of 2^63",
        r"aten::hardtanh\.out",
        "a floating bound of 2^63, which int64 does not hold: eager's conversion is not defined",
        lambda c: c.args[0].dtype == torch.int64 and 2.0**63 in map(abs, c.args[1:]),
        example=("aten::hardtanh.out", 26, 4245),
    ),
)


def explain(call: Call) -> Row | None:
    """Return the row that names the reason of a difference."""
    return next((row for row in ROWS if row.explains(call)), None)
