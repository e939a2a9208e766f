# SPDX-License-Identifier: BSD-3-Clause
"""Quantized kernels against PyTorch's decomposed operators, or against their equation."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import etx_kernels_portable
import pytest
import torch
from harness import PLUGIN, KernelError, Out, Plugin
from torch.ao.quantization.fx import _decomposed  # noqa: F401  (registers the operators)

OPS = torch.ops.quantized_decomposed
RANGES = {
    torch.int8: (-128, 127),
    torch.uint8: (0, 255),
    torch.int16: (-32768, 32767),
    torch.int32: (-(2**31), 2**31 - 1),
}


def call(name: str, *args: Any) -> list[Any]:
    return PLUGIN.call(f"quantized_decomposed::{name}", *args)


def numbers(*shape: int, scale: float = 3.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator) * scale


@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("source", [torch.float32, torch.float16, torch.bfloat16])
def test_quantize_per_tensor(dtype: torch.dtype, source: torch.dtype) -> None:
    low, high = (-(2**20), 2**20) if dtype == torch.int32 else RANGES[dtype]
    x = numbers(3, 1000, scale=100).to(source)
    args = (x, 0.37, 3, low, high, dtype)
    (got,) = call("quantize_per_tensor.out", *args, Out(x.shape, dtype))
    assert torch.equal(got, OPS.quantize_per_tensor(*args))


def test_quantize_rounds_half_to_even_and_saturates() -> None:
    x = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, float("inf"), -float("inf")])
    (got,) = call("quantize_per_tensor.out", x, 1.0, 0, -128, 127, torch.int8, Out([9], torch.int8))
    assert got.tolist() == [0, 2, 2, 0, -2, 127, -128, 127, -128]


@pytest.mark.parametrize("level", ["base", "v3", "v4"])
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_bytes_at_every_level(
    dtype: torch.dtype, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of any length, with and without whole vectors, to the bit; NaN is the least number."""
    library = shutil.copy(etx_kernels_portable.library_path(), tmp_path / f"{level}.so")
    monkeypatch.setenv("ETX_KERNELS_ISA", level)
    plugin = Plugin(str(library))
    low, high = RANGES[dtype]
    for n in (1, 7, 8, 15, 16, 17, 31, 65, 200):
        x = numbers(n, scale=300)
        x[n // 2], x[n // 3] = float("nan"), float("inf")
        for zero in (low, 3, high, 2**24 + 1):
            args = (0.37, zero, low, high, dtype)
            name = "quantized_decomposed::quantize_per_tensor.out"
            (q,) = plugin.call(name, x, *args, Out([n], dtype))
            rounded = torch.round(x * (1 / torch.tensor(0.37))).double() + zero
            want = rounded.nan_to_num(low, high, low).clamp(low, high)
            assert torch.equal(q, want.to(dtype)), (n, zero)
            name = "quantized_decomposed::dequantize_per_tensor.out"
            (y,) = plugin.call(name, q, *args, None, Out([n], torch.float32))
            centred = q.to(torch.float32) - torch.tensor(zero, dtype=torch.float32)
            assert torch.equal(y, centred * 0.37), (n, zero)


def test_quantize_to_the_whole_range_of_int32() -> None:
    x = torch.tensor([2.0**24 + 2, -(2.0**31), -3.0, 1e30])
    low, high = RANGES[torch.int32]
    out = Out([4], torch.int32)
    (got,) = call("quantize_per_tensor.out", x, 1.0, 0, low, high, torch.int32, out)
    assert got.tolist() == [2**24 + 2, low, -3, high]


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_per_tensor_with_parameters_in_tensors(kind: torch.dtype) -> None:
    x = numbers(7, 33)
    scale, zero = torch.tensor([0.05], dtype=kind), torch.tensor([-4])
    args = (x, scale, zero, -128, 127, torch.int8)
    (q,) = call("quantize_per_tensor.Tensor_out", *args, Out(x.shape, torch.int8))
    assert torch.equal(q, OPS.quantize_per_tensor.tensor(*args))
    back = (q, scale, zero, -128, 127, torch.int8)
    (y,) = call("dequantize_per_tensor.Tensor_out", *back, None, Out(x.shape, torch.float32))
    torch.testing.assert_close(y, OPS.dequantize_per_tensor.tensor(*back))


@pytest.mark.parametrize("dtype", RANGES)
@pytest.mark.parametrize("target", [torch.float32, torch.float16])
def test_dequantize_per_tensor(dtype: torch.dtype, target: torch.dtype) -> None:
    low, high = max(RANGES[dtype][0], -2000), min(RANGES[dtype][1], 2000)
    q = torch.randint(low, high, (5, 1001)).to(dtype)
    args = (q, 0.01, 5, *RANGES[dtype], dtype)
    (got,) = call("dequantize_per_tensor.out", *args, target, Out(q.shape, target))
    tol = 1e-3 if target == torch.float16 else 1e-6
    want = ((q.double() - 5) * 0.01).to(target)
    torch.testing.assert_close(got, want, rtol=tol, atol=tol)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_per_channel(axis: int, kind: torch.dtype) -> None:
    x = numbers(4, 5, 6)
    n = x.shape[axis]
    scales, zeros = torch.rand(n, dtype=kind) + 0.02, torch.arange(n) - 2
    args = (x, scales, zeros, axis % 3, -128, 127, torch.int8)
    given = (x, scales, zeros, axis, -128, 127, torch.int8)
    (q,) = call("quantize_per_channel.out", *given, Out(x.shape, torch.int8))
    assert (q.int() - OPS.quantize_per_channel(*args).int()).abs().max() <= 0
    shape = [-1 if d == axis % 3 else 1 for d in range(3)]
    out = Out(x.shape, torch.float32)
    (y,) = call("dequantize_per_channel.out", q, *given[1:], None, out)
    want = (q.float() - zeros.view(shape)) * scales.view(shape)
    torch.testing.assert_close(y, want.float())
    (y,) = call("dequantize_per_channel.out", q, scales, None, *given[3:], None, out)
    torch.testing.assert_close(y, (q.float() * scales.view(shape)).float())


def test_channels_last_and_mixed_layouts() -> None:
    x = numbers(2, 3, 4, 5).to(memory_format=torch.channels_last)
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 2, 3])
    args = (x, scales, zeros, 1, -128, 127, torch.int8)
    want = OPS.quantize_per_channel(*args)
    for order in ([0, 2, 3, 1], [0, 1, 2, 3]):
        (got,) = call("quantize_per_channel.out", *args, Out(x.shape, torch.int8, order))
        assert torch.equal(got, want)
        plain = (x, 0.1, 0, -128, 127, torch.int8)
        (got,) = call("quantize_per_tensor.out", *plain, Out(x.shape, torch.int8, order))
        assert torch.equal(got, OPS.quantize_per_tensor(*plain))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
@pytest.mark.parametrize(
    "make", [lambda: numbers(9, 11), lambda: torch.zeros(3), lambda: -torch.ones(4)]
)
def test_choose_qparams(dtype: torch.dtype, make: Any) -> None:
    args = (make(), *RANGES[dtype], 1.1920928955078125e-07, dtype)
    scale, zero = call(
        "choose_qparams.Tensor_out", *args, Out([1], torch.float64), Out([1], torch.int64)
    )
    want_scale, want_zero = OPS.choose_qparams.tensor(*args)
    torch.testing.assert_close(scale, want_scale, check_dtype=False)
    assert torch.equal(zero, want_zero.long())


@pytest.mark.parametrize("source", [torch.float32, torch.float16])
def test_per_token(source: torch.dtype) -> None:
    x = numbers(2, 7, 300).to(source)
    outs = Out([2, 7, 1], torch.float64), Out([2, 7, 1], torch.int64)
    scale, zero = call("choose_qparams_per_token_asymmetric.out", x, torch.int8, *outs)
    want_scale, want_zero = OPS.choose_qparams_per_token_asymmetric(x, torch.int8)
    torch.testing.assert_close(scale, want_scale, rtol=1e-3, atol=0)
    assert (zero - want_zero).abs().max() <= (1 if source == torch.float16 else 0)
    for kind in (torch.float64, torch.float32):
        params = scale.to(kind), zero
        args = (x.float(), *params, -128, 127, torch.int8)
        (q,) = call("quantize_per_token.out", *args, Out(x.shape, torch.int8))
        assert torch.equal(q, OPS.quantize_per_token(*args))
        back = (q, *params, -128, 127, torch.int8, torch.float32)
        (y,) = call("dequantize_per_token.out", *back, Out(x.shape, torch.float32))
        torch.testing.assert_close(y, OPS.dequantize_per_token(*back))


def test_add() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-128, 128, (3, 1000), generator=generator).to(torch.int8) for _ in "ab")
    left, right = (0.1, 3, -128, 127), (0.2, -5, -128, 127)
    total = OPS.dequantize_per_tensor(a, *left, torch.int8)
    total = total + OPS.dequantize_per_tensor(b, *right, torch.int8)
    want = OPS.quantize_per_tensor(total, 0.25, 7, -128, 127, torch.int8)
    args = (a, *left, b, *right, 0.25, 7, -128, 127)
    (got,) = call("add.out", *args, Out(a.shape, torch.int8))
    assert torch.equal(got, want)


def pack(values: torch.Tensor, bits: int) -> torch.Tensor:
    """Pack numbers as the embedding kernels read them: 4 bits from above, 2 bits from below."""
    shifts = torch.tensor([4, 0] if bits == 4 else [0, 2, 4, 6])
    stored = (values + 2 ** (bits - 1)).unflatten(-1, (-1, 8 // bits))
    return (stored << shifts).sum(-1).to(torch.uint8)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("groups", [0, 1, 3])
@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("target", [torch.float32, torch.float16])
def test_embedding(bits: int, groups: int, has_zeros: bool, target: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(bits)
    half = 2 ** (bits - 1)
    values = torch.randint(-half, half, (10, 24), generator=generator)
    shape = (10, groups) if groups else (10,)
    scales = torch.rand(shape, generator=generator) + 0.5
    zeros = torch.randint(-3, 3, shape, generator=generator).float() if has_zeros else None
    each = scales.reshape(10, -1).repeat_interleave(24 // max(groups, 1), dim=1)
    table = values.float()
    if zeros is not None:
        table = table - zeros.reshape(10, -1).repeat_interleave(24 // max(groups, 1), dim=1)
    table = (table * each).to(target)
    indices = torch.tensor([[0, 9, 3], [3, 1, 1]])
    weight = values.to(torch.int8) if bits == 8 else pack(values, bits)
    name = {8: "embedding_byte", 4: "embedding_4bit", 2: "embedding_2bit"}[bits]
    args = (weight, scales, zeros, -half, half - 1, indices)
    out = Out([2, 3, 24], target)
    for results in (call(f"{name}.out", *args, out), call(f"{name}.dtype_out", *args, target, out)):
        torch.testing.assert_close(results[0], table[indices])


@pytest.mark.parametrize("wrong", [10, -1])
def test_embedding_refuses_indices_outside(wrong: int) -> None:
    weight, scales = torch.zeros(10, 4, dtype=torch.int8), torch.ones(10)
    out = Out([1, 4], torch.float32)
    with pytest.raises(KernelError, match="less than weight's rows"):
        call("embedding_byte.out", weight, scales, None, -128, 127, torch.tensor([wrong]), out)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_mixed_mm(dtype: torch.dtype) -> None:
    x, weight = numbers(5, 40).to(dtype), torch.randint(-128, 128, (40, 17)).to(torch.int8)
    scales = (torch.rand(40) + 0.1).to(dtype)
    (got,) = call("mixed_mm.out", x, weight, scales, None, Out([5, 17], dtype))
    want = (x.double() @ (weight.double() * scales.double()[:, None])).to(dtype)
    tol = 1e-2 if dtype == torch.float16 else 1e-5
    torch.testing.assert_close(got, want, rtol=tol, atol=tol * 100)


@pytest.mark.parametrize("groups", [0, 1, 4])
@pytest.mark.parametrize("target", [None, torch.float16])
def test_mixed_linear(groups: int, target: torch.dtype | None) -> None:
    x, weight = numbers(2, 5, 40), torch.randint(-128, 128, (17, 40)).to(torch.int8)
    scales = torch.rand((17, groups) if groups else (17,)) + 0.1
    each = scales.reshape(17, -1).repeat_interleave(40 // max(groups, 1), dim=1)
    kind = target or torch.float32
    (got,) = call("mixed_linear.out", x, weight, scales, None, target, Out([2, 5, 17], kind))
    want = (x.double() @ (weight.double() * each.double()).T).to(kind)
    tol = 1e-2 if target else 1e-5
    torch.testing.assert_close(got, want, rtol=tol, atol=tol * 100)


BAD = [
    ("quantize_per_tensor.out", (0.1, 0, -129, 127, torch.int8), torch.int8, "within the range"),
    ("quantize_per_tensor.out", (0.1, 0, 5, 4, torch.int8), torch.int8, "within the range"),
    ("quantize_per_tensor.out", (0.1, 0, 0, 1, torch.int64), torch.int64, "must be uint8"),
    ("quantize_per_tensor.out", (0.1, 0, -128, 127, torch.int8), torch.uint8, "of dtype"),
    ("quantize_per_tensor.out", (0.1, 2**40, -128, 127, torch.int8), torch.int8, "int32"),
]


@pytest.mark.parametrize(("name", "args", "kind", "reason"), BAD)
def test_refuses(name: str, args: Any, kind: torch.dtype, reason: str) -> None:
    with pytest.raises(KernelError, match=reason):
        call(name, numbers(3), *args, Out([3], kind))


@pytest.mark.parametrize("scales", [torch.float32, torch.float64])
@pytest.mark.parametrize("zeros", [torch.int64, torch.int32])
def test_of_nothing(scales: torch.dtype, zeros: torch.dtype) -> None:
    """No rows, no channels: what parameters there are has no memory."""
    x, q = torch.empty(0, 4), torch.empty(0, 4, dtype=torch.int8)
    tokens = torch.empty(0, 1, dtype=scales), torch.empty(0, 1, dtype=zeros)
    channels = torch.empty(0, dtype=scales), torch.empty(0, dtype=zeros)
    float32 = torch.float32
    for name, *args in (
        ("quantize_per_token", x, *tokens, -128, 127, torch.int8),
        ("quantize_per_channel", x, *channels, 0, -128, 127, torch.int8),
        ("dequantize_per_token", q, *tokens, -128, 127, torch.int8, float32),
        ("dequantize_per_channel", q, *channels, 0, -128, 127, torch.int8, float32),
    ):
        dtype = float32 if name.startswith("de") else torch.int8
        (got,) = call(f"{name}.out", *args, Out([0, 4], dtype))
        assert got.shape == (0, 4)
