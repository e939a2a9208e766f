# SPDX-License-Identifier: BSD-3-Clause
"""Wrong arguments give an error with a reason, and never a crash."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from arguments import Out, Same, Slot
from harness import PLUGIN, Kernel, KernelError

F32 = torch.float32
X = torch.ones(2, 3)
EXPECTED = ("InvalidArgument", "NotSupported")


def out(*shape: int, dtype: torch.dtype = F32, slack: int = 0) -> Out:
    return Out(shape, dtype, slack=slack)


@pytest.mark.parametrize(
    ("name", "args", "error", "reason"),
    [
        ("aten::add.out", (X, torch.ones(4), 1, out(2, 3)), "InvalidArgument", "equal or 1"),
        ("aten::add.out", (X, X, 1, out(2, 2)), "InvalidArgument", "shape of the result"),
        ("aten::add.out", (X, X, 1, out(6)), "InvalidArgument", "rank"),
        ("aten::add.out", (X, X, 1, out(2, 3, dtype=torch.int64)), "InvalidArgument", "dtype"),
        ("aten::add.out", (X.to(torch.complex64), X, 1, out(2, 3)), "NotSupported", "dtypes"),
        ("aten::sub.out", (X > 0, X > 0, 1, out(2, 3)), "NotSupported", "bool"),
        ("aten::exp.out", (X, out(2, 3, dtype=torch.int32)), "InvalidArgument", "floating"),
        ("aten::abs.out", (X, out(2, 3, dtype=torch.float64)), "InvalidArgument", "dtype of self"),
        ("aten::bitwise_and.Tensor_out", (X, X, out(2, 3)), "NotSupported", "dtypes"),
        (
            "aten::floor_divide.out",
            (X.long(), X.long() * 0, out(2, 3, dtype=torch.int64)),
            "InvalidArgument",
            "divided by zero",
        ),
        ("aten::div.out_mode", (X, X, "up", out(2, 3)), "InvalidArgument", "rounding_mode"),
        (
            "aten::pow.Tensor_Scalar_out",
            (X.long(), -1, out(2, 3, dtype=torch.int64)),
            "InvalidArgument",
            "negative power",
        ),
        (
            "torchvision::roi_align.out",
            (
                torch.ones(1, 1, 9, 9),
                torch.tensor([[0.0, 0, 0, 8, 8]]),
                1.0,
                1,
                1,
                65535,
                False,
                out(1, 1, 1, 1),
            ),
            "InvalidArgument",
            "lower sampling_ratio",
        ),
        ("aten::clamp.out", (X, None, None, out(2, 3)), "InvalidArgument", "min and max"),
        ("aten::where.self_out", (X, X, X, out(2, 3)), "InvalidArgument", "dtype bool"),
        ("aten::sum.IntList_out", (X, [2], False, None, out(2)), "InvalidArgument", "rank"),
        ("aten::sum.IntList_out", (X, [0, -2], False, None, out(3)), "InvalidArgument", "twice"),
        ("aten::mean.out", (X, [0], False, None, out(3, 1)), "InvalidArgument", "rank"),
        ("aten::amax.out", (torch.ones(0, 3), [0], False, out(3)), "InvalidArgument", "empty"),
        ("aten::argmax.out", (X, 0, False, out(3)), "InvalidArgument", "int64"),
        ("aten::var.out", (X.long(), [0], True, False, out(3)), "NotSupported", "floating"),
        ("aten::arange.start_out", (0, 5, 0, out(5)), "InvalidArgument", "step"),
        ("aten::arange.start_out", (0, 5, -1, out(5)), "InvalidArgument", "step"),
        ("aten::arange.out", (1e300, out(5)), "InvalidArgument", "too many"),
        ("aten::arange.out", (float("nan"), out(5)), "InvalidArgument", "finite"),
        ("aten::full.out", ([2, -3], 1, out(2, 3)), "InvalidArgument", "shape of the result"),
        ("aten::full.out", ([2**40, 2**40], 1, out(2, 3)), "InvalidArgument", "shape"),
        ("aten::tril.out", (torch.ones(3), 0, out(3)), "InvalidArgument", "2 dimensions"),
        ("aten::cumsum.out", (X, 2, None, out(2, 3)), "InvalidArgument", "rank"),
        (
            "aten::scatter_reduce.two_out",
            (X, 0, torch.zeros(2, 3, dtype=torch.int64), X, "max", True, out(2, 3)),
            "InvalidArgument",
            "reduce must be",
        ),
        (
            "aten::scatter_reduce.two_out",
            (
                X + 0j,
                0,
                torch.zeros(2, 3, dtype=torch.int64),
                X + 0j,
                "sum",
                True,
                Out([2, 3], torch.complex64),
            ),
            "NotSupported",
            "bool, integers and floating",
        ),
        (
            "aten::native_group_norm.out",
            (
                torch.ones(2, 4, 3),
                *(None, None, 2**62 + 2, 4, 3, 2, 1e-5),
                *(out(2, 4, 3), out(2, 2), out(2, 2)),
            ),
            "InvalidArgument",
            "N . C . HxW elements",
        ),
    ],
)
def test_wrong_arguments_are_explained(
    name: str, args: tuple[Any, ...], error: str, reason: str
) -> None:
    with pytest.raises(KernelError, match=reason) as caught:
        PLUGIN.call(name, *args)
    assert caught.value.error == error


def random_tensor(draw: random.Random) -> torch.Tensor:
    shape = [draw.choice((0, 1, 1, 2, 3)) for _ in range(draw.randrange(5))]
    dtype = draw.choice((torch.float32, torch.int64, torch.bool, torch.float16, torch.complex64))
    return torch.ones(shape).to(dtype)


def random_argument(letter: str, optional: bool, written: bool, draw: random.Random) -> Any:
    if optional and draw.random() < 0.3:
        return None
    if letter == "v":
        return Slot()
    if letter == "T":
        tensor = random_tensor(draw)
        return Out(tensor.shape, tensor.dtype) if written else tensor
    if letter in "LO":
        return [random_tensor(draw) for _ in range(draw.randrange(1, 4))]
    if letter == "I":
        return [draw.choice((-1, 0, 1, 2, 3)) for _ in range(draw.randrange(5))]
    choices: dict[str, tuple[Any, ...]] = {
        "i": (-1, 0, 1, 2, 5),
        "d": (-1.0, 0.0, 0.5),
        "b": (False, True),
        "s": (-1, 0, 2, 0.5, True),
        "c": ("none", "tanh", "floor", ""),
        "D": ([], [1.0], [0.5, 2.0]),
        "B": ([], [True], [True, False, True]),
    }
    return draw.choice(choices[letter])


def failure(name: str, args: list[Any]) -> KernelError | None:
    try:
        PLUGIN.call(name, *args)
    except KernelError as error:
        return error
    return None


@pytest.mark.parametrize("kernel", [*PLUGIN.kernels.values()], ids=[*PLUGIN.kernels])
def test_random_arguments_do_not_crash(kernel: Kernel) -> None:
    draw = random.Random(kernel.name)
    called = kernel.name in PLUGIN.called
    for _ in range(60):
        args = [random_argument(p.letter, p.optional, p.written, draw) for p in kernel.parameters]
        error = failure(kernel.name, args)
        assert error is None or (error.error in EXPECTED and error.reason), (error, args)
    if not called:
        PLUGIN.called.discard(kernel.name)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("aten::_cdist_forward.out", (torch.ones(5, 3), torch.ones(2, 3), 2.0, None, Same(1))),
        ("aten::add.out", (torch.ones(2, 3), torch.ones(1, 3), 1, Same(1))),
        ("aten::mm.out", (torch.ones(4, 2), torch.ones(2, 9), Same(1))),
    ],
)
def test_an_input_is_not_resized(name: str, args: tuple[Any, ...]) -> None:
    """Sizes that were checked must hold while the kernel reads."""
    with pytest.raises(KernelError, match="out must not be an input"):
        PLUGIN.call(name, *args)


def test_bounds_that_no_integer_holds() -> None:
    """Not a number counts as 0, what is too large as the largest."""
    x = torch.tensor([-5, 0, 5])
    nan, inf = float("nan"), float("inf")
    (actual,) = PLUGIN.call("aten::hardtanh.out", x, nan, inf, out(3, dtype=torch.int64))
    assert actual.tolist() == [0, 0, 5]


def test_integer_products_wrap() -> None:
    """Under sanitizers too: the calls are recorded."""
    big = torch.full((2, 2), 2**62)
    for name, args in (
        ("aten::mm.out", (big, big)),
        ("aten::linear.out", (big, big, None)),
        ("aten::addmm.out", (big, big, big, 2**62, 3)),
    ):
        (actual,) = PLUGIN.call(name, *args, out(2, 2, dtype=torch.int64))
        expected = (2 * 2**124) * (3 if "addmm" in name else 1)
        expected += 2**124 if "addmm" in name else 0
        assert actual.tolist() == [[(expected + 2**63) % 2**64 - 2**63] * 2] * 2, name


def test_the_lowest_integer_is_divided_by_minus_one() -> None:
    lowest = torch.full((1, 1, 2), -(2**63))
    args = (lowest[None], [1, 1], [], [0, 0], False, True, -1)
    (actual,) = PLUGIN.call("aten::avg_pool2d.out", *args, out(1, 1, 1, 2, dtype=torch.int64))
    assert actual.tolist() == [[[[-(2**63)] * 2]]]
