# SPDX-License-Identifier: BSD-3-Clause
"""Weights of 8 and 4 bits, dynamic activations, embeddings: near to float, small, on the device."""

from __future__ import annotations

import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import (
    QuantizationConfig,
    QuantizationError,
    XNNPACKQuantizer,
    compare,
    get_embedding_quantization_config,
    get_symmetric_quantization_config,
    get_weight_quantization_config,
    quantize,
)
from torch import Tensor, nn
from torch.fx import GraphModule

aten = torch.ops.aten
WEIGHTS = 128 * 192 + 192 * 64
PROGRAM = 8_000


def layers() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(128, 192), nn.SiLU(), nn.Linear(192, 64)).eval()


def names(model: GraphModule) -> list[str]:
    return [str(node.target) for node in model.graph.nodes if node.op == "call_function"]


def run(model: GraphModule, target: str, *inputs: Tensor) -> tuple[Tensor, int]:
    """Return what the compiled model returns on the device, and the size of its file."""
    program = torch.export.export(model, inputs)
    config = ExecutorchBackendConfig(target=target)
    buffer = to_edge(program).to_executorch(config).buffer
    return torch.as_tensor(etx_runtime.load(buffer)(*inputs)), len(buffer)


CONFIGS = {
    "dynamic": (get_symmetric_quantization_config(is_dynamic=True), 30),
    "dynamic per channel": (get_symmetric_quantization_config(True, is_dynamic=True), 35),
    "8 bits": (get_weight_quantization_config(), 35),
    "8 bits by row": (get_weight_quantization_config(is_dynamic=True), 35),
    "8 bits in groups": (get_weight_quantization_config(8, 32), 35),
    "4 bits": (get_weight_quantization_config(4), 15),
    "4 bits in groups": (get_weight_quantization_config(4, 32), 18),
    "4 bits in groups by row": (get_weight_quantization_config(4, 32, is_dynamic=True), 18),
}


@pytest.mark.parametrize("target", ["etx", "executorch"])
@pytest.mark.parametrize("name", CONFIGS)
def test_linear_layers(name: str, target: str) -> None:
    config, sqnr = CONFIGS[name]
    model, x = layers(), torch.randn(20, 128)
    quantized = quantize(model, [(x,)], XNNPACKQuantizer().set_global(config))
    assert compare(model, quantized, [(x,)]).sqnr > sqnr
    got, size = run(quantized, target, x)
    if name.startswith("dynamic") and target == "etx":  # takes the range of each row: nearer
        assert compare(model, lambda _: got, [(x,)]).sqnr > sqnr
    else:
        torch.testing.assert_close(got, quantized(x), rtol=1e-5, atol=1e-5)
    groups = WEIGHTS // 32 if "groups" in name else 192 + 64
    assert size < WEIGHTS + 12 * groups + PROGRAM


def images() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(4, 8, 3, padding="same"),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.ReLU(),
        nn.ConvTranspose2d(8, 32, 2, 2, groups=2),
    ).eval()


@pytest.mark.parametrize("target", ["etx", "executorch"])
@pytest.mark.parametrize("name", [name for name in CONFIGS if name.startswith("dynamic")])
def test_convolutions_of_a_range_that_is_measured(name: str, target: str) -> None:
    config, _ = CONFIGS[name]
    model, x = images(), torch.randn(2, 4, 9, 7)
    quantized = quantize(model, [(x,)], XNNPACKQuantizer().set_global(config))
    assert sum("choose_qparams" in name for name in names(quantized)) == 2  # not the depthwise one
    assert compare(model, quantized, [(x,)]).sqnr > 35
    got, _ = run(quantized, target, x)
    torch.testing.assert_close(got, quantized(x), rtol=1e-5, atol=1e-5)


def test_no_weight_of_a_convolution_is_float_on_the_device() -> None:
    x = torch.randn(2, 4, 9, 7)
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
    quantized = quantize(images(), [(x,)], XNNPACKQuantizer().set_global(config))
    program = to_edge(torch.export.export(quantized, (x,))).to_executorch()
    called = [str(node.target) for node in program.exported_program().graph.nodes]
    assert len([name for name in called if "dynamic_conv" in name]) == 2
    assert not [name for name in called if "dequantize" in name]


def test_activations_by_row_do_not_depend_on_other_rows() -> None:
    config = get_weight_quantization_config(is_dynamic=True)
    x = torch.randn(4, 128) * torch.tensor([1.0, 10.0, 100.0, 1000.0])[:, None]
    quantized = quantize(layers(), [(x,)], XNNPACKQuantizer().set_global(config))
    alone = torch.cat([quantized(row[None].expand(4, -1))[:1] for row in x])
    torch.testing.assert_close(quantized(x), alone, rtol=1e-5, atol=1e-5)


def test_one_range_serves_layers_that_read_the_same_value() -> None:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = (nn.Linear(16, 16) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.a(x) * self.b(x) + self.c(x)
            return result

    config = get_weight_quantization_config(is_dynamic=True)
    quantized = quantize(Branches(), [(torch.randn(2, 16),)], XNNPACKQuantizer().set_global(config))
    assert sum("choose_qparams" in name for name in names(quantized)) == 1


class Words(nn.Module):
    """An embedding whose table is also the weight of the layer that scores words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 64)
        self.inner = nn.Linear(64, 64)
        self.scores = nn.Linear(64, 100, bias=False)
        self.scores.weight = self.words.weight

    def forward(self, tokens: Tensor) -> Tensor:
        result: Tensor = self.scores(self.inner(self.words(tokens)))
        return result


@pytest.mark.parametrize("target", ["etx", "executorch"])
@pytest.mark.parametrize("group_size", [None, 32])
@pytest.mark.parametrize(("bits", "sqnr"), [(8, 35), (4, 15), (2, 4)])
def test_embeddings(bits: int, sqnr: float, group_size: int | None, target: str) -> None:
    torch.manual_seed(0)
    model, tokens = Words().eval(), torch.tensor([[3, 99, 0], [1, 1, 7]])
    quantizer = XNNPACKQuantizer().set_operator_type(
        aten.embedding, get_embedding_quantization_config(bits, group_size)
    )
    quantized = quantize(model, [(tokens,)], quantizer)
    kind = {8: "embedding_byte", 4: "embedding_4bit", 2: "embedding_2bit"}[bits]
    assert [name for name in names(quantized) if "embedding" in name] == [
        f"quantized_decomposed.{kind}.default"
    ]
    assert compare(model, quantized, [(tokens,)]).sqnr > sqnr
    got, size = run(quantized, target, tokens)
    torch.testing.assert_close(got, quantized(tokens), rtol=1e-5, atol=1e-5)
    assert size < 100 * 64 * (4 + bits / 8) + 64 * 64 * 4 + PROGRAM


def test_a_tied_table_may_have_two_forms() -> None:
    torch.manual_seed(0)
    model, tokens = Words().eval(), torch.tensor([[3, 99, 0]])
    quantizer = XNNPACKQuantizer().set_global(get_weight_quantization_config(4, 32))
    quantizer.set_operator_type(aten.embedding, get_embedding_quantization_config(4, 32))
    quantized = quantize(model, [(tokens,)], quantizer)
    assert {"quantized_decomposed.embedding_4bit.default"} < set(names(quantized))
    assert sum("per_channel_group" in name for name in names(quantized)) == 2
    assert not [n for n, p in quantized.named_parameters() if p.dim() > 1]


BAD = {
    "no divisor": (get_weight_quantization_config(4, 48), "layer '2'.*192|layer '0'.*128 numbers"),
    "rows of a table": (None, "layer 'words'.*63 numbers.*bytes of 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_refuses_groups_that_do_not_fit(name: str) -> None:
    config, message = BAD[name]
    quantizer = XNNPACKQuantizer().set_global(config)
    model, x = layers(), torch.randn(2, 128)
    if config is None:
        quantizer.set_operator_type(aten.embedding, get_embedding_quantization_config(4))
        model = nn.Sequential()
        model.add_module("words", nn.Embedding(10, 63))
        x = torch.tensor([1])
    with pytest.raises(QuantizationError, match=message):
        quantize(model, [(x,)], quantizer)


@pytest.mark.parametrize(
    "make",
    [
        lambda: get_weight_quantization_config(3),
        lambda: get_weight_quantization_config(4, 1),
        lambda: get_embedding_quantization_config(16),
    ],
)
def test_refuses_configurations_that_do_not_exist(make: object) -> None:
    with pytest.raises(QuantizationError, match="expected"):
        make()  # type: ignore[operator]


def test_the_most_special_configuration_counts() -> None:
    weights: QuantizationConfig = get_weight_quantization_config()
    x = torch.randn(2, 128)

    def quantized(quantizer: XNNPACKQuantizer) -> list[bool]:
        nodes = quantize(layers(), [(x,)], quantizer).graph.nodes
        weights = [str(node.args[1]) for node in nodes if node.target is aten.linear.default]
        return ["dequantize" in weight for weight in weights]

    first, second = [True, False], [False, True]
    make = XNNPACKQuantizer
    assert quantized(make().set_module_name("0", weights)) == first
    assert quantized(make().set_global(weights).set_module_name("0", None)) == second
    assert (
        quantized(make().set_module_type(nn.Linear, None).set_module_name("2", weights)) == second
    )
    assert (
        quantized(make().set_operator_type(aten.linear, weights).set_module_name("2", None))
        == first
    )
    assert (
        quantized(
            make().set_global(weights).set_filter_function(lambda node: "linear_1" not in node.name)
        )
        == first
    )
