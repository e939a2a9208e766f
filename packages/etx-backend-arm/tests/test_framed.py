# SPDX-License-Identifier: BSD-3-Clause
"""Pads, windows, blocks, single norms: one delegate, next to eager and quantized models."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.ethos_u.backend import EthosUPartitioner, EthosUQuantizer
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.quantizer import get_symmetric_a16w8_quantization_config
from etx_quant import quantize
from lowered import delegates, interpreted, lower
from test_filled import SPECS, check
from test_forms import Whole
from torch import Tensor, nn
from torch.nn import functional

Made = tuple[Callable[[Tensor], Tensor], tuple[int, ...]]
IMAGE = (1, 2, 4, 3)
CASES: dict[str, Made] = {
    "reflect_1d": (lambda x: functional.pad(x, (3, 2), "reflect"), (2, 3, 7)),
    "reflect_2d": (lambda x: functional.pad(x, (1, 0, 2, 3), "reflect"), (1, 3, 5, 4)),
    "reflect_3d": (lambda x: functional.pad(x, (1, 1, 0, 1, 2, 0), "reflect"), (1, 2, 4, 3, 3)),
    "replicate_1d": (lambda x: functional.pad(x, (0, 4), "replicate"), (3, 5)),
    "replicate_2d": (lambda x: functional.pad(x, (3, 1, 0, 2), "replicate"), (2, 2, 3, 4)),
    "replicate_3d": (lambda x: functional.pad(x, (1, 2) * 3, "replicate"), (1, 1, 3, 2, 2)),
    "constant": (lambda x: functional.pad(x, (1, 2), value=1.5), (2, 3, 5)),
    "constant_below": (lambda x: functional.pad(x, (1, 1, 2, 0), value=-7.0), (1, 2, 3, 5)),
    "zeros": (lambda x: functional.pad(x, (2, 2)), (4, 5)),
    "pad_of_sum": (lambda x: functional.pad(x + x, (1, 1), value=20.0), (2, 5)),
    "unshuffle": (lambda x: functional.pixel_unshuffle(x, 2), (2, 3, 4, 6)),
    "unshuffle_image": (lambda x: functional.pixel_unshuffle(x, 3), (1, 6, 3)),
    "windows": (lambda x: x.unfold(1, 4, 2), (3, 9, 2)),
    "windows_apart": (lambda x: x.unfold(0, 2, 3), (8, 3)),
    "windows_adjoin": (lambda x: x.unfold(-1, 3, 3), (2, 4, 10)),
    "one_window": (lambda x: x.unfold(2, 4, 1), (1, 2, 4, 3)),
    "norm_1": (lambda x: torch.linalg.vector_norm(x, 1, dim=1), (3, 6)),
    "norm_2": (lambda x: torch.linalg.vector_norm(x, dim=(0, 2), keepdim=True), (3, 4, 2)),
    "norm_largest": (lambda x: torch.linalg.vector_norm(x, float("inf"), dim=-1), (2, 3, 4)),
    "repeated": (lambda x: x.repeat_interleave(3, 1), (2, 4)),
    "transpose_copy": (lambda x: torch.transpose_copy(x, 0, 2), (2, 3, 4)),
    "t_copy": (torch.t_copy, (3, 5)),
    "bilinear": (lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"), IMAGE),
    "bilinear_down": (lambda x: functional.interpolate(x, (3, 2), mode="bilinear"), IMAGE),
    "nearest": (lambda x: functional.interpolate(x, scale_factor=2), IMAGE),
    "nearest_5_7": (lambda x: functional.interpolate(x, (7, 2)), (1, 2, 5, 3)),
    "nearest_half": (lambda x: functional.interpolate(x, scale_factor=0.5), (2, 3, 6, 4)),
    "log_softmax": (lambda x: torch.log_softmax(x, -1), (2, 3, 5)),
    "log_softmax_channels": (lambda x: torch.log_softmax(x, 1), (1, 4, 3, 2)),
    "mean_kept": (lambda x: x.mean(-1, keepdim=True), (3, 4)),
    "of_100_windows": (lambda x: functional.adaptive_avg_pool2d(x, 10), (1, 2, 7, 7)),
    "integer_ones": (lambda x: x + torch.ones(2, 4, dtype=torch.int64), (2, 4)),
    "integer_zeros": (lambda x: torch.zeros(4, dtype=torch.int32) - x, (2, 4)),
    "integer_full": (lambda x: x * torch.full((2, 4), 3, dtype=torch.int8), (2, 4)),
    "integer_count": (lambda x: torch.arange(4) + x, (2, 4)),
    "integer_eye": (lambda x: torch.maximum(torch.eye(4, dtype=torch.int32), x), (4, 4)),
    "strided": (lambda x: torch.as_strided_copy(x, (3, 8), (8, 1)), (4, 6)),
}
MORE = {"norm_2": 4.0, "norm_1": 2.0, "norm_largest": 2.0, "of_100_windows": 2.0}
MORE |= {
    "log_softmax": 4.0,
    "log_softmax_channels": 4.0,
    "mean_kept": 2.0,
    "bilinear": 2.0,
    "bilinear_down": 2.0,
}
"""Steps where there are integers in between, or a result fills a part of its range; else one."""


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", CASES)
def test_it_is_one_delegate(name: str, spec: str) -> None:
    torch.manual_seed(0)
    function, shape = CASES[name]
    x = torch.randn(shape) * 3 + 1
    check(Whole(function), TosaCompileSpec(spec), x, steps=MORE.get(name, 1.0))


NORMS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "rows": (nn.BatchNorm1d(6), (4, 6)),
    "lines": (nn.BatchNorm1d(3), (2, 3, 5)),
    "images": (nn.BatchNorm2d(4), (2, 4, 3, 5)),
    "no_affine": (nn.BatchNorm2d(5, affine=False), (1, 5, 4, 2)),
    "volumes": (nn.BatchNorm3d(2), (1, 2, 3, 2, 4)),
}


def settled(name: str) -> tuple[nn.Module, Tensor]:
    """Return a norm with statistics, and its input."""
    torch.manual_seed(0)
    norm, shape = NORMS[name]
    for each in norm.state_dict().values():
        if each.is_floating_point():
            each.copy_(torch.rand(each.shape) + 0.3)
    return norm.eval(), torch.randn(shape) * 2


@pytest.mark.parametrize("name", NORMS)
def test_a_batch_norm_alone(name: str) -> None:
    norm, x = settled(name)
    check(norm, TosaCompileSpec("TOSA-1.0+FP"), x)


@pytest.mark.parametrize("name", ["rows", "lines", "images", "no_affine"])
def test_a_batch_norm_alone_of_integers(name: str) -> None:
    norm, x = settled(name)
    check(norm, TosaCompileSpec("TOSA-1.0+INT"), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_batch_norm_of_halves(dtype: torch.dtype) -> None:
    norm, x = settled("images")
    spec = TosaCompileSpec("TOSA-1.0+FP+bf16")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.testing, "assert_close", near)
        check(norm.to(dtype), spec, x.to(dtype))


def near(actual: Tensor, expected: Tensor, **_: float) -> None:
    """Compare halves: within a step of the type."""
    bound = float(torch.finfo(expected.dtype).eps) * float(expected.abs().max())
    assert float((actual.double() - expected.double()).abs().max()) <= bound


def test_the_nearest_by_another_factor_stays_outside() -> None:
    """Ten rows by 0.55 are five, and row 1 is row 1 / 0.55, not 1 * 10 / 5."""
    x = torch.randn(1, 1, 10, 10)
    program = lower(Whole(lambda x: functional.interpolate(x, scale_factor=0.55) * 2), x)
    names = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert any("upsample_nearest2d" in name for name in names)
    torch.testing.assert_close(
        interpreted(program, x)[0], functional.interpolate(x, scale_factor=0.55) * 2
    )


@pytest.mark.parametrize("family", ["ethos-u55-128", "ethos-u85-256"])
def test_images_of_int16_stay_outside_of_an_ethos_u(family: str) -> None:
    spec = EthosUCompileSpec(family)
    quantizer = EthosUQuantizer(spec)
    quantizer.set_global(get_symmetric_a16w8_quantization_config())
    x = torch.randn(1, 2, 3, 3)
    net = Whole(lambda x: functional.interpolate(x, scale_factor=2))
    program = lower(quantize(net, [(x,)], quantizer), x, partitioner=EthosUPartitioner(spec))
    assert not delegates(program)


def test_a_branch_stays_outside() -> None:
    def either(x: Tensor) -> Tensor:
        chosen: Tensor = torch.cond(x.sum() > 0, torch.sin, torch.cos, [x])
        return chosen

    program = lower(Whole(either), torch.randn(2, 5))
    assert any("cond" in str(n.target) for n in program.graph.nodes)
