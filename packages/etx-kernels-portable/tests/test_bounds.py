# SPDX-License-Identifier: BSD-3-Clause
"""Arguments beyond what memory and int64 hold: refused, or computed without undefined behaviour.

Under sanitizers too: the calls are recorded.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from arguments import Out, Slot
from harness import PLUGIN, KernelError, reserved

F32 = torch.float32
LONG = torch.int64
BYTE = torch.uint8
LARGE = 2**31 - 1
HUGE = 2**62


def out(*shape: int, dtype: torch.dtype = F32) -> Out:
    return Out(shape, dtype, slack=0)


REFUSED = {
    "batch_norm_long": (
        "aten::_native_batch_norm_legit.out",
        (torch.ones(2, 3, 4), None, None, torch.ones(64), torch.ones(64), True, 0.1, 1e-5),
        (out(2, 3, 4), out(3), out(3)),
        "running_mean and running_var",
    ),
    "batch_norm_short": (
        "aten::_native_batch_norm_legit.out",
        (torch.ones(2, 3, 4), None, None, torch.ones(3), torch.ones(1), True, 0.1, 1e-5),
        (out(2, 3, 4), out(3), out(3)),
        "running_mean and running_var",
    ),
    "convolution_groups": (
        "aten::convolution.out",
        (torch.ones(1, 0, 4), torch.ones(0, 4, 1), None, [1], [0], [1], False, [0], HUGE),
        (out(1, 0, 4),),
        "groups must be",
    ),
    "transposed_groups": (
        "aten::convolution.out",
        (torch.ones(1, 0, 4), torch.ones(0, 4, 1), torch.ones(0), [1], [0], [1], True, [0], HUGE),
        (out(1, 0, 4),),
        "groups must be",
    ),
    "convolution_backward": (
        "aten::convolution_backward.out",
        (
            *(torch.ones(1, 2, 3, 1), torch.ones(1, 2, 1, 3), torch.ones(2, 2, 1, 1), None),
            *([1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True]),
        ),
        (out(1, 2, 1, 3), out(2, 2, 1, 1), out(2)),
        "shape of the convolution's output",
    ),
    "max_pool_backward": (
        "aten::max_pool2d_with_indices_backward.grad_input",
        (
            torch.empty(0, 0, 1, LARGE, dtype=BYTE),
            *(torch.empty(LARGE, LARGE, 0, 0, dtype=BYTE), [1, 1], [1, 1], [0, 0], [1, 1], False),
            torch.empty(0, 0, 1, LARGE, dtype=LONG),
        ),
        (out(LARGE, LARGE, 0, 0, dtype=BYTE),),
        "batch and channels of self",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=[*REFUSED])
def test_sizes_that_do_not_fit_are_refused(case: tuple[str, Any, Any, str]) -> None:
    name, args, outs, reason = case
    with pytest.raises(KernelError, match=reason) as caught:
        PLUGIN.call(name, *args, *outs)
    assert caught.value.error == "InvalidArgument"


@pytest.mark.parametrize("size", [[LARGE], [3, LARGE], [2, 2, LARGE]])
@pytest.mark.parametrize("stride", [4 * LARGE, 2**33 - 5, 2**32 + 3, HUGE, 2**63 - 1])
def test_a_view_whose_last_element_no_int64_counts(size: list[int], stride: int) -> None:
    """The product of a size and a stride wraps to a number within self, or to a negative one."""
    x = reserved(4 * LARGE).reshape(4, LARGE)
    view = (size, [1] * (len(size) - 1) + [stride], None)
    with pytest.raises(KernelError, match="size and stride must stay within self"):
        PLUGIN.call("aten::as_strided_copy.out", x, *view, out(*size, dtype=BYTE))


def test_a_mask_that_broadcasts_to_more_than_int64_counts() -> None:
    x = reserved(4 * LARGE).reshape(1, 1, 4, LARGE)
    mask = reserved(4 * LARGE).view(torch.bool).reshape(4, LARGE, 1, 1)
    with pytest.raises(KernelError, match="more elements than int64 counts"):
        PLUGIN.call("aten::masked_select.out", x, mask, out(8, dtype=BYTE))


@pytest.mark.slow
def test_a_roll_of_more_elements_than_int32_counts() -> None:
    """Not row-major, so that the elements are put in order and back; 9 GB."""
    x = reserved(2**31 + 2**17).reshape(1, 2**10, 2**20 + 64, 2).permute(0, 3, 1, 2)
    x[0, 0, 0, 0], x[0, 1, -1, -1], x[0, 1, 5, 7] = 1, 2, 3
    result = Out(x.shape, BYTE, [0, 2, 3, 1], slack=0)
    (actual,) = PLUGIN.call("aten::roll.out", x, [3], [], result)
    assert (actual[0, 0, 0, 3], actual[0, 0, 0, 2], actual[0, 1, 5, 10]) == (1, 2, 3)
    assert actual.count_nonzero() == 3


@pytest.mark.parametrize("channels", [1, 2])
def test_a_convolution_that_reaches_over_gigabytes(channels: int) -> None:
    """Two outputs an axis: the first sees the image with the last tap, the other with the first."""
    x = torch.randn(1, channels, 1, 1, 1)
    w = torch.randn(2, channels, 2, 2, 2)
    far = [2**30] * 3
    args = (x, w, None, far, far, far, False, [0, 0, 0], 1)
    (actual,) = PLUGIN.call("aten::convolution.out", *args, out(1, 2, 2, 2, 2))
    expected = (x * w).sum(1).flip(1, 2, 3)
    torch.testing.assert_close(actual[0], expected)


def test_a_transposed_convolution_of_a_gigantic_stride() -> None:
    x, w = torch.randn(1, 2, 1, 1), torch.randn(2, 3, 2, 4)
    args = (x, w, None, [LARGE, LARGE], [0, 0], [1, 1], True, [0, 0], 1)
    (actual,) = PLUGIN.call("aten::convolution.out", *args, out(1, 3, 2, 4))
    torch.testing.assert_close(actual, torch.einsum("nixy,iohw->nohw", x, w))


@pytest.mark.parametrize("transposed", [False, True])
def test_a_convolution_of_no_channels_is_its_bias(transposed: bool) -> None:
    bias = torch.tensor([1.0, 2.0])
    w = torch.empty((0, 2, 3000) if transposed else (2, 0, 3000))
    length = 6009 if transposed else 11
    x = torch.empty(1, 0, 3010)
    args = (x, w, bias, [1], [0], [1], transposed, [0], 1)
    (actual,) = PLUGIN.call("aten::convolution.out", *args, out(1, 2, length))
    assert torch.equal(actual, bias[None, :, None].expand(1, 2, length))


def test_a_pool_as_large_as_numbers_go() -> None:
    x = torch.randn(1, 2, 2)
    args: tuple[Any, ...] = ([LARGE], [], [LARGE // 2], [1], False)
    outs = out(1, 1, 1), out(1, 1, 1, dtype=LONG)
    largest, index = PLUGIN.call("aten::max_pool2d_with_indices.out", x, *args, *outs)
    assert (largest.item(), index.item()) == (x.max().item(), x.argmax().item())


NOTHING = {
    "group_norm": (
        "aten::native_group_norm.out",
        (torch.empty(1, 0), None, None, 1, HUGE, 0, 1, 1e-5),
        (out(1, 0), out(1, 1), out(1, 1)),
    ),
    "batch_norm": (
        "aten::_native_batch_norm_legit.no_stats_out",
        (torch.empty(LARGE, 1000, 0), None, None, True, 0.1, 1e-5),
        (out(LARGE, 1000, 0), out(1000), out(1000)),
    ),
    "addmm": (
        "aten::addmm.out",
        (torch.ones(1), torch.empty(LARGE, 0), torch.empty(0, 0), 1, 1),
        (out(LARGE, 0),),
    ),
    "cdist": (
        "aten::_cdist_forward.out",
        (torch.empty(2, LARGE, 0), torch.empty(2, 0, 0), 2.0, None),
        (out(2, LARGE, 0),),
    ),
    "masked_select": (
        "aten::masked_select.out",
        (torch.empty(LARGE, LARGE, 1, 0, dtype=BYTE), torch.ones(1, 1, 1000, 1) > 0),
        (out(0, dtype=BYTE),),
    ),
    "upsample_nearest2d": (
        "aten::upsample_nearest2d.vec_out",
        (torch.empty(1, 0, 1, 1), [LARGE, LARGE], None),
        (out(1, 0, LARGE, LARGE),),
    ),
    "upsample_bilinear2d_aa": (
        "aten::_upsample_bilinear2d_aa.out",
        (torch.empty(0, 1, 1, 1), [LARGE, 1], False, None, None),
        (out(0, 1, LARGE, 1),),
    ),
}


@pytest.mark.parametrize("case", NOTHING.values(), ids=[*NOTHING])
def test_nothing_takes_no_time(case: tuple[str, Any, Any]) -> None:
    """Tensors without elements, whose sizes are large: at once, and nothing overflows."""
    name, args, outs = case
    results = PLUGIN.call(name, *args, *outs)
    assert [math.prod(r.shape) for r in results] == [math.prod(o.shape) for o in outs]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_integers_that_are_added_up_wrap(dtype: torch.dtype) -> None:
    info = torch.iinfo(dtype)
    x, index = torch.full((2,), info.max, dtype=dtype), torch.tensor([0, 0])
    result = out(2, dtype=dtype)
    for name, args in (
        ("aten::index_put.out", (x, [index], x, True)),
        ("aten::scatter_add.out", (x, 0, index, x)),
        ("aten::scatter_reduce.two_out", (x, 0, index, x, "sum", True)),
    ):
        (actual,) = PLUGIN.call(name, *args, result)
        assert actual.tolist() == [info.max - 2, info.max], name
    plane = x.reshape(1, 1, 2)
    windows = ([1, 1], [1, 1], [0, 0], [1, 1], False, index.reshape(1, 1, 2))
    name = "aten::max_pool2d_with_indices_backward.grad_input"
    (actual,) = PLUGIN.call(name, plane, plane, *windows, out(1, 1, 2, dtype=dtype))
    assert actual.tolist() == [[[-2, 0]]]


def test_bytes_that_are_no_bools() -> None:
    """A file may hold any byte where a bool should be: all but 0 are true."""
    odd = torch.tensor([2, 0, 255], dtype=torch.uint8).view(torch.bool)
    yes, index = torch.ones(3) > 0, torch.arange(3)
    single = odd[:1].reshape(())
    bools, longs = out(3, dtype=torch.bool), out(3, dtype=LONG)
    for name, args, result, expected in (
        ("aten::logical_and.out", (odd, yes), bools, [1, 0, 1]),
        ("aten::_to_copy.out", (odd, False, None), longs, [1, 0, 1]),
        ("aten::sum.IntList_out", (odd, [0], False, None), out(dtype=LONG), 2),
        ("aten::any.out", (odd, 0, False), out(dtype=torch.bool), 1),
        ("aten::scatter_add.out", (odd, 0, index, odd), bools, [1, 0, 1]),
        ("aten::scatter_reduce.two_out", (odd, 0, index, odd, "prod", True), bools, [1, 0, 1]),
        ("aten::index_put.out", (odd, [index], odd, True), bools, [1, 0, 1]),
        ("aten::cumsum.out", (odd, 0, None), longs, [1, 1, 2]),
        ("aten::cumprod.out", (odd, 0, None), longs, [1, 0, 0]),
    ):
        (actual,) = PLUGIN.call(name, *args, result)
        view = actual.view(torch.uint8) if actual.dtype == torch.bool else actual
        assert view.tolist() == expected, name
    _, order = PLUGIN.call("aten::sort.values", odd, 0, False, bools, longs)
    assert order.tolist() == [1, 0, 2]
    assert PLUGIN.call("aten::_local_scalar_dense", single, Slot()) == [True]


def test_an_image_wider_than_float32_counts() -> None:
    """Positions are computed in float32, which rounds the last to one behind the image."""
    width = 2**24 + 4
    x = torch.zeros(1, 1, 1, width, dtype=torch.uint8)
    x[..., -1] = 7
    result = out(1, 1, 1, width, dtype=torch.uint8)
    (actual,) = PLUGIN.call("aten::upsample_nearest2d.vec_out", x, [1, width], None, result)
    assert actual[0, 0, 0, -1].item() == 7
