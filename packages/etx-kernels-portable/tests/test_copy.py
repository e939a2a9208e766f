# SPDX-License-Identifier: BSD-3-Clause
"""Copies between dtypes, dim orders and shapes; factories that eager's samples do not reach."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from case import ALL, label
from harness import PLUGIN, KernelError, Out
from torch.testing import assert_close

CAST_DTYPES = (*ALL, torch.int8, torch.int16)
ORDERS = ([0, 1, 2, 3], [0, 2, 3, 1])


def image(dim_order: list[int], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    tensor = torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).to(dtype)
    last = dim_order == ORDERS[1]
    return tensor.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)


@pytest.mark.parametrize("source", CAST_DTYPES, ids=label)
def test_to_copy_converts(source: torch.dtype) -> None:
    numbers = torch.tensor([0, 1, 2, 3, 100, 0.5, -0.5, -3, 7.75] * 33)
    values = numbers.abs().to(source) if source == torch.uint8 else numbers.to(source)
    for target in CAST_DTYPES:
        if target == torch.uint8:
            values = values.abs() if source != torch.bool else values
        (actual,) = PLUGIN.call(
            "aten::_to_copy.out", values, False, None, Out(values.shape, target)
        )
        assert_close(actual, values.to(target))


@pytest.mark.parametrize(("before", "after"), [*product(ORDERS, ORDERS)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8], ids=label)
def test_to_dim_order_copy(before: list[int], after: list[int], dtype: torch.dtype) -> None:
    source = image(before)
    (actual,) = PLUGIN.call(
        "dim_order_ops::_to_dim_order_copy.out",
        source,
        False,
        after,
        Out(source.shape, dtype, after),
    )
    assert_close(actual, source.to(dtype), check_stride=False)
    assert actual.stride() == image(after).stride()


@pytest.mark.parametrize(("before", "after"), [*product(ORDERS, ORDERS)])
def test_clone_dim_order(before: list[int], after: list[int]) -> None:
    source = image(before)
    out = Out(source.shape, source.dtype, after)
    (actual,) = PLUGIN.call("dim_order_ops::_clone_dim_order.out", source, False, after, out)
    assert_close(actual, source, check_stride=False)


def test_empty_dim_order_resizes() -> None:
    out = Out([2, 3, 4, 5], torch.float32, ORDERS[1])
    (actual,) = PLUGIN.call("dim_order_ops::_empty_dim_order.out", [2, 3, 4, 5], ORDERS[1], out)
    assert actual.stride() == image(ORDERS[1]).stride()


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 1]])
def test_another_dim_order_than_that_of_out_fails(order: list[int]) -> None:
    out = Out([2, 3, 4, 5], torch.float32, ORDERS[1])
    with pytest.raises(KernelError, match="dim order"):
        PLUGIN.call("dim_order_ops::_clone_dim_order.out", image(ORDERS[1]), False, order, out)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((2, 3, 4), torch.float32), ((4,), torch.float32), ((), torch.float64), ((3, 1), torch.int32)],
)
def test_copy_broadcasts_and_converts(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    target = torch.zeros(2, 3, 4)
    source = (torch.rand(shape) * 9).to(dtype)
    (actual,) = PLUGIN.call("aten::copy_", target, source, False)
    assert_close(actual, target.copy_(source))
    (actual,) = PLUGIN.call("aten::copy.out", target, source, False, Out([2, 3, 4], torch.float32))
    assert_close(actual, target)


@pytest.mark.parametrize("shape", [(2,), (2, 3, 4, 1), (1, 2, 3, 4)])
def test_copy_of_a_shape_that_does_not_fit_fails(shape: tuple[int, ...]) -> None:
    with pytest.raises(KernelError, match="broadcasts to self"):
        PLUGIN.call("aten::copy_", torch.zeros(2, 3, 4), torch.zeros(shape), False)


@pytest.mark.parametrize("name", ["et_copy::_h2d_copy.out", "et_copy::_d2h_copy.out"])
def test_device_copies_copy(name: str) -> None:
    source = torch.rand(3, 4)
    assert_close(PLUGIN.call(name, source, Out([3, 4], torch.float32))[0], source)


@pytest.mark.parametrize("dtype", ALL, ids=label)
def test_fill_with_a_tensor(dtype: torch.dtype) -> None:
    like, value = torch.zeros(3, 4, dtype=dtype), torch.tensor(3.0)
    (actual,) = PLUGIN.call("aten::fill.Tensor_out", like, value, Out([3, 4], dtype))
    assert_close(actual, torch.full((3, 4), 3.0).to(dtype))


def test_dropout_in_eval_mode_is_the_identity() -> None:
    source = torch.rand(3, 4)
    outs = Out([3, 4], torch.float32), Out([3, 4], torch.bool)
    kept, mask = PLUGIN.call("aten::native_dropout.out", source, 0.5, False, *outs)
    assert_close(kept, source)
    assert bool(mask.all())
    with pytest.raises(KernelError, match="p must be a probability"):
        PLUGIN.call("aten::native_dropout.out", source, 1.5, True, *outs)


def test_dropout_in_training_mode_scales_what_it_keeps() -> None:
    source = torch.rand(100, 100) + 1
    outs = Out([100, 100], torch.float32), Out([100, 100], torch.bool)
    kept, mask = PLUGIN.call("aten::native_dropout.out", source, 0.5, True, *outs)
    assert_close(kept, source * mask * 2)
    assert 4500 < mask.sum() < 5500
