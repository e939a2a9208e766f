# SPDX-License-Identifier: BSD-3-Clause
"""int8 programs against the quantized model: integer operators have its values, permuted."""

from __future__ import annotations

import os

import pytest
import torch
from compared_models import exported
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_devtools.compare import compare
from etx_exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from etx_quant import Int8Quantizer, XNNPACKQuantizer, get_symmetric_quantization_config, quantize
from etx_schema import read_pte
from etx_schema.problem import DEBUG_KEY
from planted import quantized
from torch import nn
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    PerGroup,
    quantize_,
)

SEEDS = int(os.environ.get("ETX_SEEDS", "2"))
"""How many models are drawn; more by hand."""


def test_noise_by_design_and_of_the_runtime():
    program, inputs, content = quantized()
    floating = exported("convolutions")[0]
    report = compare(read_pte(content), program, [inputs], floating=floating)
    (call,) = report.calls
    found = {layer.float_value: layer for layer in call.layers}
    assert {"relu6", "batch_norm_1", "sigmoid", "add", "linear", "softmax"} <= set(found)
    for layer in call.layers:
        assert 10 < layer.design < 60
        assert layer.runtime > layer.design
        assert abs(layer.device - layer.design) < 3
    assert found["linear"].module == "head"
    assert "signal to noise in dB" in "\n".join(report.lines())


def test_a_batch_norm_is_of_the_layer_that_it_became_part_of():
    """Behind an activation it is part of the next layer: the activation keeps its value."""
    torch.manual_seed(0)
    layers = (nn.Conv2d(3, 8, 3), nn.ReLU(), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 3))
    model = nn.Sequential(*layers, nn.BatchNorm2d(4)).train()
    for _ in range(20):
        model(torch.randn(8, 3, 9, 9) * 3 + 1)
    inputs = (torch.randn(1, 3, 9, 9) * 3 + 1,)
    int8 = quantize(model.eval(), [inputs], Int8Quantizer())
    program, floating = (torch.export.export(made, inputs) for made in (int8, model))
    pte = to_edge_transform_and_lower(program).to_executorch().pte_file
    (call,) = compare(pte, program, [inputs], floating=floating).calls
    assert {layer.float_value for layer in call.layers} == {"relu", "batch_norm_1"}
    assert all(20 < layer.design < 60 for layer in call.layers), call.layers


def test_no_alarm():
    program, inputs, content = quantized()
    report = compare(read_pte(content), program, [inputs])
    assert report.first is None, "\n".join(report.lines())
    found = {check.operator: check.value for check in report.calls[0].checks}
    assert found["etx::quantized_conv.out"] == "quantize_per_tensor_1.permute(0, 2, 3, 1)"
    assert all(check.made is not None for check in report.calls[0].checks)


def test_a_stripped_file_is_compared_by_operator():
    """Torch has quantizing operators that return what they compute, and none that write it."""
    program, inputs, content = quantized()
    pte = read_pte(content)
    del pte.named_data[DEBUG_KEY]
    report = compare(pte, program, [inputs])
    assert report.first is None, "\n".join(report.lines())
    assert {check.by for check in report.calls[0].checks} == {"operator"}


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_no_alarm_of_a_delegate(is_dynamic):
    """What it rounds otherwise inside is right; another weight is wrong."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(24, 24) for _ in range(6)), nn.Sigmoid()).eval()
    inputs = (torch.randn(16, 24),)
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=is_dynamic)
    int8 = quantize(model, [inputs], XNNPACKQuantizer().set_global(config))
    program = torch.export.export(int8, inputs)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    pte = edge.to_executorch().pte_file
    report = compare(pte, program, [inputs], floating=torch.export.export(model, inputs))
    assert report.first is None, "\n".join(report.lines())
    (call,) = report.calls
    assert call.layers[-1].float_value == "sigmoid"
    assert call.layers[-1].design > 20
    model[2].weight.data[:, 3] *= -1
    other = quantize(model, [inputs], XNNPACKQuantizer().set_global(config))
    report = compare(pte, torch.export.export(other, inputs), [inputs])
    assert report.first is not None


TORCHAO = {
    "int4": Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32)
    ),
    "int8": Int8DynamicActivationInt8WeightConfig(),
}


@pytest.mark.parametrize("target", ["etx", "executorch", "xnnpack"])
@pytest.mark.parametrize("config", TORCHAO)
def test_no_alarm_of_what_torchao_quantizes(config, target):
    """XNNPACK has the scales of groups in bfloat16: a result is as exact as they are."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 96), nn.SiLU(), nn.Linear(96, 64), nn.Linear(64, 8))
    inputs = (torch.randn(5, 64),)
    floating = torch.export.export(model.eval(), inputs)
    quantize_(model, TORCHAO[config])
    program = torch.export.export(model, inputs)
    parts = [XnnpackPartitioner()] if target == "xnnpack" else []
    edge = to_edge_transform_and_lower(program, partitioner=parts)
    kind = "executorch" if target == "executorch" else "etx"
    pte = edge.to_executorch(ExecutorchBackendConfig(target=kind)).pte_file
    report = compare(pte, program, [inputs], floating=floating)
    assert report.first is None, "\n".join(report.lines())
    (call,) = report.calls
    if config == "int4":
        assert all(check.by == "value" for check in call.checks)
        assert call.layers[-1].float_value == "linear_2"
    model[2].weight.scale.data[3] *= -1
    report = compare(pte, torch.export.export(model, inputs), [inputs])
    assert report.first is not None


def compared_dynamic(model, inputs, target):
    """Compare layers that are quantized at run time with the model that says so."""
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
    quantizer = XNNPACKQuantizer().set_global(config)
    program = torch.export.export(quantize(model.eval(), [inputs], quantizer), inputs)
    parts = [XnnpackPartitioner()] if target == "xnnpack" else []
    edge = to_edge_transform_and_lower(program, partitioner=parts)
    kind = "executorch" if target == "executorch" else "etx"
    pte = edge.to_executorch(ExecutorchBackendConfig(target=kind)).pte_file
    return compare(pte, program, [inputs])


@pytest.mark.parametrize("target", ["etx", "executorch", "xnnpack"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_alarm_of_rows_with_their_own_ranges(seed, target):
    """The model has one range for all: integer operators and XNNPACK take that of each row."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 32))
    report = compared_dynamic(model, (torch.randn(8, 128),), target)
    assert report.first is None, "\n".join(report.lines())


@pytest.mark.parametrize("target", ["etx", "executorch", "xnnpack"])
def test_no_alarm_of_images_with_ranges_that_are_measured(target):
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 8, 1), nn.ReLU()
    model = nn.Sequential(*layers, nn.ConvTranspose2d(8, 4, 2, 2))
    report = compared_dynamic(model, (torch.randn(1, 3, 12, 10),), target)
    assert report.first is None, "\n".join(report.lines())
    if target == "etx":
        values = {check.operator: check.by for check in report.calls[0].checks}
        assert values["etx::dynamic_conv.out"] == "value"


class Cached(nn.Module):
    """Layers whose rows are written into a cache."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(24, 24) for _ in range(6)))
        self.register_buffer("cache", torch.zeros(1, 9, 24))

    def forward(self, x, position):
        self.cache[:, position] = self.layers(x)
        return self.cache * 1.5


def test_what_a_delegate_writes_into_a_cache_is_a_value_of_the_model():
    """It is rounded otherwise inside; what the buffer becomes is right by what was written."""
    torch.manual_seed(0)
    inputs = (torch.randn(4, 24), torch.tensor([5, 0, 2, 3]))
    config = get_symmetric_quantization_config(is_per_channel=True)
    int8 = quantize(Cached(), [inputs], XNNPACKQuantizer().set_global(config))
    program = torch.export.export(int8, inputs)
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    report = compare(edge.to_executorch().pte_file, program, [inputs])
    assert report.first is None, "\n".join(report.lines())
    checks = report.calls[0].checks
    (written,) = (check for check in checks if "(-1, 0, 1)" in check.value)
    assert written.operator == "delegate XnnpackBackend"
    assert all(check.by for check in checks)
