# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.passes.fuse_batch_norm import FuseBatchNorm
from etx_exir.passes.remove_dead_code import RemoveDeadCode
from programs import assert_like_eager, core, counts
from torch import nn


def settled(norm):
    norm.running_mean.uniform_(-1, 1)
    norm.running_var.uniform_(0.5, 2)
    nn.init.uniform_(norm.weight, 0.5, 2)
    nn.init.uniform_(norm.bias)
    return norm


LAYERS = {
    "conv": (nn.Conv2d(4, 6, 3), settled(nn.BatchNorm2d(6)), (2, 4, 8, 8)),
    "conv without bias": (nn.Conv2d(4, 6, 3, bias=False), settled(nn.BatchNorm2d(6)), (2, 4, 8, 8)),
    "grouped": (nn.Conv2d(4, 6, 3, groups=2), settled(nn.BatchNorm2d(6)), (2, 4, 8, 8)),
    "conv1d": (nn.Conv1d(4, 6, 3), settled(nn.BatchNorm1d(6)), (2, 4, 8)),
    "transposed": (nn.ConvTranspose2d(4, 6, 3), settled(nn.BatchNorm2d(6)), (2, 4, 8, 8)),
    "transposed, grouped": (
        nn.ConvTranspose2d(4, 6, 3, groups=2),
        settled(nn.BatchNorm2d(6)),
        (2, 4, 8, 8),
    ),
    "linear": (nn.Linear(4, 6), settled(nn.BatchNorm1d(6)), (2, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_norm_disappears_into_the_weights(name):
    layer, norm, shape = LAYERS[name]
    module = nn.Sequential(layer, norm).eval()
    x = torch.randn(shape)
    program = core(module, (x,))
    assert FuseBatchNorm().run(program)
    RemoveDeadCode().run(program)
    assert not FuseBatchNorm().run(program)
    assert set(counts(program).values()) == {1}
    assert_like_eager(program, module, (x,), (torch.randn(shape),), tolerance=1e-4)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 3, 1), settled(nn.BatchNorm2d(3))

    def forward(self, x):
        y = self.conv(x)
        return self.norm(y) + y


def test_norm_stays_where_the_unscaled_result_is_needed():
    x = torch.randn(1, 3, 4, 4)
    program = core(Shared(), (x,))
    assert not FuseBatchNorm().run(program)


def test_norm_before_a_layer_stays():
    program = core(
        nn.Sequential(settled(nn.BatchNorm2d(3)), nn.Conv2d(3, 3, 1)), (torch.randn(1, 3, 4, 4),)
    )
    assert not FuseBatchNorm().run(program)
