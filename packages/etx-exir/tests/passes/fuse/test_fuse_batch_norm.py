# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.passes.fuse.fuse_batch_norm import FuseBatchNorm
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from programs import Several, apply, assert_like_eager, core, counts, refusals, settled
from torch import nn

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
    assert refusals(FuseBatchNorm(), program) == {"another operator reads what is normalised"}
