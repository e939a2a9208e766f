# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Trained
from etx_quant import Int8Quantizer, QuantizationError, compare, quantize
from torch import nn


def accuracy(logits: np.ndarray | torch.Tensor, labels: torch.Tensor) -> float:
    return float((torch.as_tensor(logits).argmax(-1) == labels).float().mean())


def counts(model: torch.fx.GraphModule) -> Counter[str]:
    targets = (str(node.target) for node in model.graph.nodes)
    return Counter(t.rpartition("::")[2].split(".")[1] for t in targets if "quantize_per" in t)


def test_accuracy_is_kept(trained: Trained) -> None:
    with torch.no_grad():
        float_accuracy = accuracy(trained.model(trained.images), trained.labels)
        int8_accuracy = accuracy(trained.quantized(trained.images), trained.labels)
    assert float_accuracy > 0.97
    assert abs(float_accuracy - int8_accuracy) <= 0.005


def test_weights_are_int8(trained: Trained) -> None:
    weights = [p for _, p in trained.quantized.named_buffers() if p.dtype == torch.int8]
    assert sorted(w.numel() for w in weights) == sorted([16 * 9, 16 * 16 * 9, 32 * 16 * 9, 1280])


def test_every_quantized_operator_is_fed_by_dequantize(trained: Trained) -> None:
    found = counts(trained.quantized)
    assert found["dequantize_per_channel"] == 4
    assert found["quantize_per_tensor"] >= 6


@pytest.mark.parametrize("target", ["executorch", "etx"])
def test_runs_on_the_device_runtime(trained: Trained, target: str, tmp_path: Path) -> None:
    import etx_runtime
    from etx_exir import ExecutorchBackendConfig, to_edge

    batch = torch.export.Dim("batch", min=1, max=512)
    program = torch.export.export(
        trained.quantized, (trained.images[:8],), dynamic_shapes=({0: batch},)
    )
    path = tmp_path / "digits.pte"
    to_edge(program).to_executorch(ExecutorchBackendConfig(target=target)).save(str(path))
    model = etx_runtime.load(path)
    logits = model(trained.images.numpy())
    with torch.no_grad():
        float_accuracy = accuracy(trained.model(trained.images), trained.labels)
        expected = trained.quantized(trained.images).numpy()
    assert abs(accuracy(logits, trained.labels) - float_accuracy) <= 0.005
    step = float(np.abs(np.diff(np.unique(expected))).min())
    apart = np.abs(logits - expected)
    if target == "executorch":  # the same float operators
        assert (apart > step / 2).mean() < 0.01
    else:  # integers are rounded by one multiplication, floats by two
        assert apart.max() < 1.5 * step


def test_a_module_can_be_left_in_float(trained: Trained) -> None:
    quantizer = Int8Quantizer().set_module_name("head", None)
    model = quantize(trained.model, [(trained.images[:64],)], quantizer)
    weights = [p for _, p in model.named_buffers() if p.dtype == torch.int8]
    assert 1280 not in [w.numel() for w in weights]
    assert len(weights) == 3


def test_compare_measures_the_gap(trained: Trained) -> None:
    inputs = [(b,) for b in trained.images.split(100)]
    gap = compare(trained.model, trained.quantized, inputs)
    assert gap.sqnr > 20
    assert gap.agreement > 0.98
    same = compare(trained.model, trained.model, inputs)
    assert same.sqnr == float("inf")
    assert same.max_error == 0


def test_no_calibration_is_an_error(trained: Trained) -> None:
    with pytest.raises(QuantizationError, match="at least one tuple"):
        quantize(trained.model, [])


def test_nothing_to_quantize_is_an_error() -> None:
    with pytest.raises(QuantizationError, match=r"nothing is quantized: .* none of softmax with"):
        quantize(nn.Softmax(-1), [(torch.rand(2, 3),)])


def test_what_is_left_is_named_those_with_weights_first() -> None:
    model = nn.Sequential(nn.Softmax(1), nn.Conv3d(2, 3, 2), nn.Sigmoid())
    left = r"none of conv3d \(layer '1'\), softmax, sigmoid with its configuration"
    with pytest.raises(
        QuantizationError, match=f"nothing is quantized: the quantizer takes {left}"
    ):
        quantize(model, [(torch.rand(1, 2, 4, 4, 4),)])


def test_a_model_in_training_is_quantized_as_for_evaluation() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.ReLU())
    x = torch.rand(2, 3, 8, 8)
    quantized = quantize(model, [(x,)])
    assert model.training
    assert int(model[1].num_batches_tracked) == 0
    assert quantized.train() is quantized
    copied = copy.deepcopy(quantized)
    assert copied.eval() is copied
    assert compare(model.eval(), copied, [(x,)]).sqnr > 30
