# SPDX-License-Identifier: BSD-3-Clause
"""Weights that a model computes of constants are quantized as those that it holds."""

from __future__ import annotations

from collections.abc import Callable

import etx_runtime
import pytest
import torch
from etx_exir import to_edge
from etx_quant import (
    Int8Quantizer,
    XNNPACKQuantizer,
    compare,
    get_symmetric_quantization_config,
    quantize,
)
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Net(nn.Module):
    """A matrix ``w``, a bias ``b``, low ranks ``p`` and ``q``, and what ``forward`` makes."""

    def __init__(self, run: Callable[[Net, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.w, self.b = nn.Parameter(torch.randn(32, 32) / 5), nn.Parameter(torch.randn(32))
        self.p, self.q = (nn.Parameter(torch.randn(size) / 5) for size in ((32, 2), (2, 32)))
        self.run = run

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


def standardized(weight: Tensor) -> Tensor:
    return ((weight - weight.mean()) / weight.std()).view(32, 8, 2, 2)


ROWS, IMAGES, VOLUMES = (4, 32), (2, 8, 6, 6), (2, 8, 3, 3, 3)
CONV2D, CONV3D = nn.Conv2d(8, 8, 3), nn.Conv3d(8, 8, 2)
NETS: dict[str, tuple[tuple[int, ...], Callable[[], nn.Module]]] = {
    "norm": (ROWS, lambda: parametrizations.weight_norm(nn.Linear(32, 32))),
    "masked": (ROWS, lambda: Net(lambda s, x: F.linear(x, s.w * (s.w > 0)))),
    "low rank": (ROWS, lambda: Net(lambda s, x: F.linear(x, s.w + s.p @ s.q, s.b * 2))),
    "join": (ROWS, lambda: Net(lambda s, x: F.linear(x, torch.cat([s.w, s.w * 2])))),
    "part": (ROWS, lambda: Net(lambda s, x: F.linear(x, s.w[:8]))),
    "product": (ROWS, lambda: Net(lambda s, x: x @ s.w)),
    "product of a transpose": (ROWS, lambda: Net(lambda s, x: torch.mm(x, s.w.t()))),
    "product and bias": (ROWS, lambda: Net(lambda s, x: torch.addmm(s.b, x, s.w))),
    "standardized": (IMAGES, lambda: Net(lambda s, x: F.conv2d(x, standardized(s.w.repeat(1, 1))))),
    "norm and batch norm": (
        IMAGES,
        lambda: nn.Sequential(parametrizations.weight_norm(CONV2D), nn.BatchNorm2d(8)),
    ),
}


def quantized(name: str, recipe: str) -> tuple[nn.Module, nn.Module, Tensor]:
    size, make = NETS[name]
    model, x = make().eval(), torch.randn(size)
    calls = [(x,), (torch.randn(size),)]
    return model, quantize(model, calls, recipe=recipe, group_size=8), x


@pytest.mark.parametrize("recipe", ["int8", "int8-dynamic", "int8-weight", "int4"])
@pytest.mark.parametrize("name", NETS)
def test_weights_are_integers(name: str, recipe: str) -> None:
    if NETS[name][0] is not ROWS and recipe != "int8":
        return
    model, result, x = quantized(name, recipe)
    assert compare(model, result, [(x,)]).sqnr > (18 if recipe == "int4" else 30)
    program = to_edge(torch.export.export(result, (x,))).to_executorch()
    names = {operator.name for operator in program.pte_file.program.execution_plan[0].operators}
    assert not names & {"aten::linear", "aten::convolution", "aten::mul", "aten::cat", "aten::mm"}
    assert not {each for each in names if "channel" in each}
    device = torch.as_tensor(etx_runtime.load(program.buffer)(x))
    torch.testing.assert_close(device, result(x), rtol=0.02, atol=0.05)


def test_a_norm_behind_a_computed_weight_in_three_dimensions_is_folded() -> None:
    layer = parametrizations.weight_norm(CONV3D)
    model = nn.Sequential(layer, nn.BatchNorm3d(8), nn.Flatten(), nn.Linear(64, 8)).eval()
    x = torch.randn(VOLUMES)
    assert compare(model, quantize(model, [(x,)]), [(x,)]).sqnr > 30


class Moving(nn.Module):
    """A weight that each call changes."""

    w: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.register_buffer("w", torch.eye(8))

    def forward(self, x: Tensor) -> Tensor:
        self.w.mul_(0.5)
        return self.layer(x) @ (self.w * 2)


def test_a_weight_that_calls_change_is_no_constant() -> None:
    torch.manual_seed(0)
    model = Moving().eval()
    x = torch.randn(4, 8)
    want = model.layer(x)
    result = quantize(model, [(x,)])
    first, second = result(x), result(x)
    torch.testing.assert_close(first, 2 * second)
    assert first.norm() < want.norm()


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("quantizer", [XNNPACKQuantizer, Int8Quantizer])
@pytest.mark.parametrize("name", [name for name in NETS if "batch norm" not in name])
def test_torchao_quantizes_a_computed_weight_once(
    name: str, quantizer: type[XNNPACKQuantizer], per_channel: bool
) -> None:
    size, make = NETS[name]
    exported = torch.export.export(make().eval(), (torch.randn(size),)).module()
    chosen = quantizer().set_global(get_symmetric_quantization_config(is_per_channel=per_channel))
    prepared = prepare_pt2e(exported, chosen)
    prepared(torch.randn(size))
    graph = convert_pt2e(prepared).graph
    given = [node for node in graph.nodes if node.op == "placeholder"]
    for node in graph.nodes:  # All that depends on what is given with a call.
        if set(node.all_input_nodes) & set(given):
            given.append(node)
    calls = [node for node in graph.nodes if ".quantize_per" in str(node.target)]
    assert set(calls) <= set(given)
    assert len(calls) == (0 if "product" in name else 2)
