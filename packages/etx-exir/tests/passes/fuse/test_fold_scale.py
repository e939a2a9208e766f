# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.passes.fuse.fold_scale import FoldScale
from etx_exir.passes.normalize.scalar_operands import ScalarOperands
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from programs import Calls, Several, apply, assert_like_eager, core, counts, edge, refusals
from torch import nn
from torch.nn import functional as F

LAYERS = {
    "linear": (nn.Linear(4, 6), (2, 4), (6,)),
    "linear of a sequence": (nn.Linear(4, 6, bias=False), (2, 3, 4), (1, 6)),
    "conv": (nn.Conv2d(4, 6, 3), (2, 4, 8, 8), (6, 1, 1)),
    "grouped": (nn.Conv2d(4, 6, 3, groups=2, bias=False), (2, 4, 8, 8), (1, 6, 1, 1)),
    "conv1d": (nn.Conv1d(4, 6, 3), (2, 4, 8), (6, 1)),
    "without batch": (nn.Conv2d(4, 6, 3), (4, 8, 8), (6, 1, 1)),
    "transposed": (nn.ConvTranspose2d(4, 6, 3), (2, 4, 8, 8), (6, 1, 1)),
    "transposed, grouped": (nn.ConvTranspose2d(4, 6, 3, groups=2), (2, 4, 8, 8), (6, 1, 1)),
}


class Scaled(nn.Module):
    def __init__(self, layer, scale):
        super().__init__()
        self.layer = layer
        self.register_buffer("scale", scale)

    def forward(self, x):
        return self.scale * self.layer(x)


def folded(module, *inputs):
    program = core(module, inputs)
    ScalarOperands().run(program)
    apply(FoldScale(), program)
    RemoveDeadCode().run(program)
    assert_like_eager(program, module, inputs)
    return program


@pytest.mark.parametrize("each", [True, False], ids=["each channel", "all"])
def test_scale_disappears_into_the_weights(each):
    module = Several(
        Scaled(layer, torch.rand(shape) + 0.5 if each else torch.tensor(0.125))
        for layer, _, shape in LAYERS.values()
    )
    program = folded(module, *(torch.randn(shape) for _, shape, _ in LAYERS.values()))
    assert not any("mul" in op for op in counts(program))


def test_through_views_and_permutations():
    module = Calls(
        lambda self, x: F.linear(x, self.w, self.b).view(2, 2, 3).mT.reshape(3, 4) * 0.125,
        w=torch.randn(6, 4),
        b=torch.randn(6),
    )
    program = edge(module, (torch.randn(2, 4),))
    assert not any("mul" in op for op in counts(program))
    assert_like_eager(program, module, (torch.randn(2, 4),))


def test_every_other_channel():
    scale = torch.tensor([1.0, 2.0])
    module = Calls(
        lambda self, x: F.linear(x, self.w).view(6, 2) * self.scale,
        w=torch.randn(6, 4),
        scale=scale,
    )
    assert not any("mul" in op for op in counts(folded(module, torch.randn(2, 4))))


def attention_inputs(self, x):
    q, k, v = F.linear(x, self.w, self.b).view(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind()
    return q * 0.5, k, (v * 2).sin()


def test_the_part_of_one_projection_is_scaled_alone():
    module = Calls(attention_inputs, w=torch.randn(24, 8), b=torch.randn(24))
    assert not any("mul" in op for op in counts(folded(module, torch.randn(2, 5, 8))))


HELD = {
    "w": torch.randn(6, 4),
    "rows": torch.tensor([[1.0], [2.0]]),
    "larger": torch.ones(3, 1, 1),
    "wide": torch.ones(6, dtype=torch.float64),
    "columns": torch.arange(1.0, 5.0),
}
FORM = "the product has another dtype or shape than the layer"
WITHIN = "the factor differs within a channel"
STAYING = {
    "another operator reads the unscaled result": lambda self, x: (lambda y: y * 2 + y)(
        F.linear(x, self.w)
    ),
    "another operator reads the unscaled channels": lambda self, x: (
        lambda y: (y[:, :4] * 2, y[:, 3:])
    )(F.linear(x, self.w)),
    f"{WITHIN}: rows": lambda self, x: F.linear(x, self.w) * self.rows,
    f"{FORM}: larger": lambda self, x: F.linear(x, self.w) * self.larger,
    f"{FORM}: promoted": lambda self, x: F.linear(x, self.w) * self.wide,
    f"{WITHIN}: mixed": lambda self, x: F.linear(x, self.w).view(3, 4) * self.columns,
    "a weight would overflow or vanish": lambda self, x: F.linear(x, self.w) * 1e39,
}


@pytest.mark.parametrize("name", STAYING)
def test_scale_stays(name):
    module, x = Calls(STAYING[name], **HELD), torch.randn(2, 4)
    program = core(module, (x,))
    ScalarOperands().run(program)
    assert refusals(FoldScale(), program) == {name.partition(":")[0]}
    assert_like_eager(program, module, (x,))


def test_a_large_weight_that_others_read_is_not_stored_twice():
    module = Calls(
        lambda self, x: F.linear(x, self.w) * 2 + F.linear(x + 1, self.w), w=torch.eye(200)
    )
    program = core(module, (torch.randn(2, 200),))
    ScalarOperands().run(program)
    assert refusals(FoldScale(), program) == {
        "another operator reads the weight, which would be stored twice"
    }


def test_dynamic_batch():
    batch = torch.export.Dim("batch", max=9)
    module = Calls(lambda self, x: F.linear(x, self.w) * 0.125, w=torch.randn(6, 4))
    program = core(module, (torch.randn(2, 4),), (({0: batch},),))
    ScalarOperands().run(program)
    apply(FoldScale(), program)
    assert_like_eager(program, module, (torch.randn(5, 4),))
