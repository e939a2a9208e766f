# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.passes.fuse.absorb_batch_norm import AbsorbBatchNorm
from etx_exir.passes.fuse.fuse_batch_norm import FuseBatchNorm
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from programs import Several, apply, assert_like_eager, core, counts, refusals, settled
from torch import nn

FOLLOWED = {
    "conv": (settled(nn.BatchNorm2d(4)), nn.Conv2d(4, 6, 3), (2, 4, 8, 8)),
    "grouped": (settled(nn.BatchNorm2d(4)), nn.Conv2d(4, 6, 3, groups=2, bias=False), (1, 4, 8, 8)),
    "conv1d": (settled(nn.BatchNorm1d(4)), nn.Conv1d(4, 6, 3), (2, 4, 8)),
    "linear": (settled(nn.BatchNorm1d(4)), nn.Linear(4, 6), (2, 4)),
    "without parameters": (nn.BatchNorm1d(4, affine=False), nn.Linear(4, 6), (2, 4)),
}


def test_norm_before_a_layer_disappears_too():
    module = Several(nn.Sequential(*pair) for *pair, _ in FOLLOWED.values()).eval()
    inputs = tuple(torch.randn(shape) for *_, shape in FOLLOWED.values())
    program = core(module, inputs)
    assert not FuseBatchNorm().run(program)
    apply(AbsorbBatchNorm(), program)
    RemoveDeadCode().run(program)
    assert counts(program) == {"aten.convolution.default": 3, "aten.linear.default": 2}
    assert_like_eager(program, module, inputs, tolerance=1e-4)


STAYING = {
    "padding": (nn.Conv2d(3, 3, 3, padding=1), (1, 3, 4, 4)),
    "transposed": (nn.ConvTranspose2d(3, 3, 3), (1, 3, 4, 4)),
    "linear of a sequence": (nn.Linear(4, 4), (1, 3, 4)),
}


@pytest.mark.parametrize("name", STAYING)
def test_norm_stays_before_a_layer_that_reads_more_than_channels(name):
    layer, shape = STAYING[name]
    norm = settled(nn.BatchNorm2d(3) if len(shape) == 4 else nn.BatchNorm1d(3))
    program = core(nn.Sequential(norm, layer), (torch.randn(shape),))
    padded = name == "padding"
    (reason,) = refusals(AbsorbBatchNorm(), program)
    assert ("pads" if padded else "transposed, or normalised in another dimension") in reason


def test_norm_that_another_reads_stays():
    norm, conv = settled(nn.BatchNorm2d(3)), nn.Conv2d(3, 3, 1)
    module = nn.Sequential(norm, Residual(conv)).eval()
    program = core(module, (torch.randn(1, 3, 4, 4),))
    assert refusals(AbsorbBatchNorm(), program) == {
        "another operator reads what the batch norm computes"
    }


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)
