# SPDX-License-Identifier: BSD-3-Clause
"""A function of one tensor is one table, however it is written, of a range that suits it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import etx_runtime
import pytest
import torch
from etx_exir import to_edge
from etx_quant import annotate, compare, quantize_with_report
from torch import Tensor, nn
from torch.nn import functional as F

WRITTEN: dict[str, Callable[[Tensor], Tensor]] = {
    "swish": lambda x: x * torch.sigmoid(x),
    "quick gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "hardswish": lambda x: x * F.relu6(x + 3) / 6,
    "mish": lambda x: x * torch.tanh(F.softplus(x)),
    "gelu": lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3))),
    "leak": lambda x: torch.where(x > 0, x, x * 0.1),
    "fill": lambda x: x.masked_fill(x > 1, 1.0) * 2,
    "quotient": lambda x: x / (1 + x.abs()),
    "of one in place": lambda x: F.relu6(x + 3, inplace=True) * 2,
    "two in a row": lambda x: torch.sigmoid(F.silu(x)),
}
SATURATES: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "sigmoid": torch.sigmoid,
    "elu": F.elu,
    "exponent": lambda x: F.softplus(x) * 2,
}


class Net(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor], shift: float = 0.0) -> None:
        super().__init__()
        self.before, self.behind = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 3)
        nn.init.constant_(self.before.bias, shift)  # type: ignore[arg-type]
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.behind(self.function(self.before(x)))
        return result


def net(function: Callable[[Tensor], Tensor], shift: float = 0) -> tuple[Net, list[tuple[Tensor]]]:
    torch.manual_seed(0)
    return Net(function, shift).eval(), [(3 * torch.randn(2, 3, 16, 16),) for _ in range(3)]


@pytest.mark.parametrize("name", WRITTEN)
def test_is_one_table(name: str) -> None:
    model, calls = net(WRITTEN[name])
    quantized, report = quantize_with_report(model, calls)
    assert len(report.layers) == 3
    assert report.sqnr > 30
    manager = to_edge(torch.export.export(quantized, calls[0])).to_executorch()
    nodes = manager.exported_program().graph_module.graph.nodes
    made = Counter(str(n.target) for n in nodes if str(n.target).startswith("etx."))
    assert made == {"etx.quantized_conv.default": 2, "etx.lookup.default": 1} or made == {
        "etx.quantized_conv.out": 2,
        "etx.lookup.out": 1,
    }
    device = etx_runtime.load(manager.buffer, outputs="torch")
    assert compare(quantized, device, calls).sqnr > 50


@pytest.mark.parametrize("name", SATURATES)
@pytest.mark.parametrize("shift", [-12, 0])
def test_range_is_where_the_function_changes(
    name: str, shift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most of what the layer returns is where the function is flat; its integers are elsewhere."""
    model, calls = net(SATURATES[name], shift)
    calls[0][0][0] *= 5
    _, report = quantize_with_report(model, calls)
    layer, function, _ = report.layers
    assert layer.held is not None
    assert layer.held[0] > 0.3 * layer.seen[0]
    assert layer.saturated == 0
    monkeypatch.setattr(annotate, "_observe_through", lambda *_: None)
    _, plain = quantize_with_report(model, calls)
    assert function.sqnr > plain.layers[1].sqnr


def test_what_others_read_keeps_a_range_of_its_own() -> None:
    model, calls = net(lambda x: torch.cat([x[:, :4], torch.sigmoid(x)[:, 4:]], 1))
    _, report = quantize_with_report(model, calls)
    layer = next(each for each in report.layers if each.name == "before")
    assert layer.held is not None
    assert layer.saturated < 0.001
    assert report.sqnr > 30


def test_a_goal_keeps_a_written_function_in_float() -> None:
    model, calls = net(WRITTEN["quick gelu"])
    _, all_quantized = quantize_with_report(model, calls)
    quantized, report = quantize_with_report(model, calls, target_sqnr=all_quantized.sqnr + 3)
    assert report.kept
    assert compare(model, quantized, calls).sqnr > all_quantized.sqnr + 2.9


def test_functions_within_a_float_module_stay_float() -> None:
    model, calls = net(lambda x: x * torch.sigmoid(x))
    quantized, report = quantize_with_report(model, calls, keep_float=["before"])
    assert [layer.name for layer in report.layers] == ["behind"]
    assert compare(model, quantized, calls).sqnr > 30


def test_small_numbers_have_eight_bits_too() -> None:
    """A model of numbers that are all a power of two smaller loses as much."""
    found = []
    for weights, inputs in ((1.0, 1.0), (2**-3, 2**-4)):
        torch.manual_seed(0)
        layers = nn.Linear(64, 64, bias=False), nn.ReLU(), nn.Linear(64, 8, bias=False)
        model = nn.Sequential(*layers).eval()
        for parameter in model.parameters():
            parameter.data *= weights
        _, report = quantize_with_report(model, [(torch.randn(32, 64) * inputs,)])
        found.append(report.sqnr)
    assert abs(found[0] - found[1]) < 0.01


def test_zeros_have_a_scale() -> None:
    """What nothing came through in calibration does not make other layers' multipliers huge."""
    model, calls = net(F.relu)
    nn.init.constant_(model.before.bias, -100)  # type: ignore[arg-type]
    quantized = quantize_with_report(model, calls)[0]
    scales = [n.args[1] for n in quantized.graph.nodes if "quantize_per_tensor" in str(n.target)]
    assert min(scales) == 2**-12  # type: ignore[type-var]
    assert torch.equal(quantized(*calls[0]), quantized(*calls[1]))
