# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.passes.simplify.delay_constants import DelayConstants
from programs import Calls, apply, assert_like_eager, core
from quantized_programs import Weight
from torch import nn
from torch.ao.quantization.fx import _decomposed  # noqa: F401
from torch.nn import functional as F

LAYERS, SIZE = 4, 32
ROWS = (torch.rand(2, SIZE),)


class Layers(nn.Module):
    """Linear layers whose weights are dequantized before the first of them."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ModuleList(Weight(SIZE, SIZE) for _ in range(LAYERS))

    def forward(self, x):
        for weight in [weight() for weight in self.weights]:
            x = F.linear(x, weight)
        return x


def names(program):
    return [n.target.name() for n in program.graph.nodes if n.op == "call_function"]


def test_each_weight_is_computed_before_its_layer():
    program, module = core(Layers(), ROWS), Layers()
    assert len(set(names(program)[:LAYERS])) == 1
    apply(DelayConstants(), program)
    layer = len(names(program)) // LAYERS
    assert names(program) == names(program)[:layer] * LAYERS
    assert names(program)[0].startswith("quantized_decomposed::dequantize_per_channel")
    assert_like_eager(program, module, ROWS)


def test_weights_share_planned_memory():
    edge = to_edge(torch.export.export(Layers(), ROWS))
    made = edge.to_executorch(ExecutorchBackendConfig(target="executorch"))
    (plan,) = made.executorch_program.execution_plan
    floats = 4 * SIZE * SIZE
    assert floats <= sum(plan.non_const_buffer_sizes) < 3 * floats


def test_draws_keep_their_order():
    def draw(self, x):
        first = torch.bernoulli(self.w)
        return torch.bernoulli(x) * 2 + first

    assert not DelayConstants().run(core(Calls(draw, w=torch.full((3,), 0.5)), (torch.rand(3),)))


def test_graphs_of_branches_too():
    def chosen(self, x):
        def layer(x, w):
            half = w.exp()
            return (x * 2 + 1) * half

        return torch.cond(x.sum() > 0, layer, lambda x, w: x * w, (x, self.w))

    program = core(Calls(chosen, w=torch.rand(3)), (torch.rand(3),))
    apply(DelayConstants(), program)
