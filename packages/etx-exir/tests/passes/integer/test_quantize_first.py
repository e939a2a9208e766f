# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from programs import counts
from quantized_programs import (
    Quantized,
    Weight,
    assert_one_step,
    float_operators,
    fused,
    integer_operators,
    on_device,
    rounded,
)
from torch.nn import functional as F

ROWS = torch.randn(2, 6, 12, generator=torch.Generator().manual_seed(0))
MOVED = {
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), "quantized_avg_pool"),
    "adaptive_avg_pool1d": (lambda x: F.adaptive_avg_pool1d(x, 4), "quantized_avg_pool"),
    "mean of a line": (lambda x: F.adaptive_avg_pool1d(x, 1).squeeze(-1), "quantized_mean"),
    "sum": (lambda x: (x + x.flip(0)).reshape(4, 3, -1).transpose(1, 2), "quantized_add"),
    "shape of points": (lambda x: (x + x.roll(1, 0)).view(2, 6, 3, 4).flatten(2), "quantized_add"),
}


@pytest.mark.parametrize("name", MOVED)
def test_a_result_is_quantized_where_it_is_made(name):
    function, made = MOVED[name]
    module = Quantized(function)
    program = fused(module, [ROWS])
    assert integer_operators(program) == {made: 1}
    assert float_operators(program) == []
    assert_one_step(program, module, [ROWS])
    assert torch.equal(on_device(program, [ROWS]), program.module()(ROWS))


def test_what_another_reads_in_float_stays():
    module = Quantized(lambda x: (y := (x + x.flip(0)).flatten(1)) + 0 * rounded(y).sum())
    program = fused(module, [ROWS])
    assert "aten.add.Tensor" in float_operators(program)
    assert_one_step(program, module, [ROWS])


def test_channels_stay_last_where_points_are_regrouped():
    def pooled(x, weight, bias):
        y = rounded(F.avg_pool1d(rounded(F.conv1d(x, weight, bias)), 2))
        return F.adaptive_avg_pool1d(y, 1)

    module = Quantized(pooled, Weight(8, 6, 3), 8)
    program = fused(module, [ROWS])
    assert float_operators(program) == []
    assert counts(program)["aten.permute_copy.default"] == 1
    assert_one_step(program, module, [ROWS])
