# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.passes.fuse.absorb_batch_norm import AbsorbBatchNorm
from etx_exir.passes.fuse.fuse_batch_norm import FuseBatchNorm
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from programs import apply, assert_like_eager, core, counts
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


class Several(nn.ModuleList):
    def forward(self, *inputs):
        return [layer(x) for layer, x in zip(self, inputs, strict=True)]


def test_norm_disappears_into_the_weights():
    module = Several(nn.Sequential(layer, norm) for layer, norm, _ in LAYERS.values()).eval()
    inputs = tuple(torch.randn(shape) for _, _, shape in LAYERS.values())
    program = core(module, inputs)
    apply(FuseBatchNorm(), program)
    RemoveDeadCode().run(program)
    assert counts(program) == {"aten.convolution.default": 6, "aten.linear.default": 1}
    assert_like_eager(program, module, inputs, tolerance=1e-4)


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
    assert not AbsorbBatchNorm().run(program)


def test_norm_that_another_reads_stays():
    norm, conv = settled(nn.BatchNorm2d(3)), nn.Conv2d(3, 3, 1)
    module = nn.Sequential(norm, Residual(conv)).eval()
    program = core(module, (torch.randn(1, 3, 4, 4),))
    assert not AbsorbBatchNorm().run(program)


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)
