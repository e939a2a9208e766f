# SPDX-License-Identifier: BSD-3-Clause
"""Training with the rounding in the graph: norms are folded, accuracy is float's."""

from __future__ import annotations

import copy

import etx_runtime
import pytest
import torch
from conftest import Trained
from digits import digits
from etx_exir import compile
from etx_quant import (
    Int8Quantizer,
    QuantizationError,
    compare,
    finish_training,
    get_symmetric_quantization_config,
    prepare_training,
    quantize,
)
from torch import Tensor, nn
from torch.fx import GraphModule
from torch.nn import functional as F
from torchao.quantization.pt2e import disable_fake_quant, enable_fake_quant

BATCH = ({0: torch.export.Dim("batch", min=2, max=512)},)


@pytest.fixture(scope="module")
def tuned(trained: Trained) -> GraphModule:
    images, labels, *_ = digits()
    model = copy.deepcopy(trained.model)
    prepared = prepare_training(model, (images[:64],), dynamic_shapes=BATCH)
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(prepared.parameters(), 1e-3, momentum=0.9)
    for batch in torch.randperm(len(labels)).split(64):
        optimizer.zero_grad()
        F.cross_entropy(prepared(images[batch]), labels[batch]).backward()
        optimizer.step()
    return finish_training(prepared)


def accuracy(logits: Tensor, labels: Tensor) -> float:
    return float((logits.argmax(-1) == labels).float().mean())


def test_accuracy_is_that_of_float(trained: Trained, tuned: GraphModule) -> None:
    with torch.no_grad():
        expected = accuracy(trained.model(trained.images), trained.labels)
        tuned_logits = tuned(trained.images)
        after = accuracy(trained.quantized(trained.images), trained.labels)
    program = torch.export.export(tuned, (trained.images[:8],), dynamic_shapes=BATCH)
    device = etx_runtime.load(compile(program).buffer)(trained.images)
    assert expected > 0.97
    assert abs(expected - after) <= 0.005
    assert abs(expected - accuracy(tuned_logits, trained.labels)) <= 0.002
    assert abs(expected - accuracy(torch.as_tensor(device), trained.labels)) <= 0.002


def test_the_graph_is_that_of_quantization_after_training(
    trained: Trained, tuned: GraphModule
) -> None:
    def operators(model: GraphModule) -> list[str]:
        nodes = [node for node in model.graph.nodes if node.op == "call_function"]
        names = [str(node.target) for node in nodes]
        return sorted(name for name in names if "sym_size" not in name)

    assert operators(tuned) == operators(trained.quantized)
    assert not any("batch_norm" in name for name in operators(tuned))
    assert sum(p.numel() for p in tuned.parameters()) == 16 + 16 + 32 + 10


def test_other_convolutions_are_folded() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv1d(4, 6, 3), nn.BatchNorm1d(6), nn.ReLU()),
        *(nn.ConvTranspose1d(6, 8, 3), nn.BatchNorm1d(8), nn.Unflatten(1, (4, 2))),
        *(nn.ConvTranspose2d(4, 6, 2), nn.BatchNorm2d(6)),
    )
    x = torch.randn(2, 4, 9)
    prepared = prepare_training(model, (x,))
    prepared(x).sum().backward()
    quantized = finish_training(prepared)
    assert not any("batch_norm" in str(node.target) for node in quantized.graph.nodes)
    weights = [n for n in quantized.graph.nodes if "dequantize_per_channel" in str(n.target)]
    shapes = {tuple(getattr(quantized, w.args[0].target).shape): w.args[3] for w in weights}
    assert shapes == {(6, 4, 3): 0, (6, 8, 3): 1, (4, 6, 2, 2): 1}


def test_ranges_that_come_with_the_value() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)), torch.randn(3, 16)
    config = get_symmetric_quantization_config(is_per_channel=True, is_qat=True, is_dynamic=True)
    prepared = prepare_training(model, (x,), Int8Quantizer().set_global(config))
    prepared(x).sum().backward()
    trained = finish_training(prepared)
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
    after = quantize(model.eval(), [(x,)], Int8Quantizer().set_global(config))
    torch.testing.assert_close(trained(x), after(x), rtol=0.02, atol=0.02)


def test_nothing_to_train_is_an_error() -> None:
    with pytest.raises(QuantizationError, match="nothing is quantized"):
        prepare_training(nn.Softmax(-1), (torch.rand(2, 3),))


def norms() -> nn.Module:
    """Return norms of all kinds behind layers of all kinds, and what drops out."""
    torch.manual_seed(0)
    weight_norm = nn.utils.parametrizations.weight_norm
    return nn.Sequential(
        *(nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4, eps=0.5, momentum=0.3), nn.ReLU()),
        *(nn.Conv2d(4, 4, 3, groups=2, bias=False), nn.BatchNorm2d(4, 1e-3, 0.4, affine=False)),
        *(nn.ConvTranspose2d(4, 6, 2), nn.BatchNorm2d(6, eps=0.1, momentum=1.0)),
        *(nn.ConvTranspose2d(6, 6, 3, groups=2), nn.BatchNorm2d(6, momentum=0.0)),
        *(weight_norm(nn.Conv2d(6, 4, 1)), nn.BatchNorm2d(4, eps=0.2)),
        *(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4, track_running_stats=False), nn.Dropout(0.25)),
        *(nn.Dropout2d(0.25), nn.Conv2d(4, 4, 3, padding="same"), nn.BatchNorm2d(4, eps=0.3)),
    )


def test_norms_and_dropouts_are_those_of_the_model() -> None:
    """Without rounding it computes in training and in evaluation what the model does."""
    model, x = norms(), torch.randn(4, 3, 15, 15)
    twin = copy.deepcopy(model)
    prepared = prepare_training(model, (x,))
    prepared.apply(disable_fake_quant)
    with torch.no_grad():
        for mode in (True, False, True, True):
            assert prepared.train(mode) is prepared
            results = []
            for each in (prepared, twin.train(mode)):
                torch.manual_seed(1)
                results.append(each(x))
            torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)
        for _ in range(200):
            prepared(x + torch.randn(x.shape) / 4)
    prepared.apply(enable_fake_quant)
    names = [str(node.target) for node in finish_training(prepared).graph.nodes]
    assert sum("batch_norm" in name for name in names) == 4


def test_the_model_is_trained_too() -> None:
    model, x = nn.Sequential(nn.Linear(8, 4)), torch.randn(2, 8)
    prepared = prepare_training(model, (x,))
    assert {*prepared.parameters()} == {*model.parameters()}


def test_a_norm_over_all_batches_is_an_error() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, momentum=None))
    with pytest.raises(
        QuantizationError, match=r"layer '1': its momentum is None, .* such as 0\.1"
    ):
        prepare_training(model, (torch.randn(2, 3, 8, 8),))


def test_a_model_that_was_exported_in_training_is_one_of_evaluation() -> None:
    model, x = norms(), torch.randn(4, 3, 15, 15)
    for _ in range(20):
        model(x)
    exported = torch.export.export(model.train(), (x,)).module()
    before = exported.code
    quantized = quantize(exported, [(x,)])
    assert exported.code == before
    assert compare(model.eval(), quantized, [(x,)]).sqnr > 20
