# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from functools import cache
from weakref import WeakKeyDictionary

import etx_runtime
import keyword_spotting
import numpy as np
import pytest
import reference_model
import test_forms
import tiny
import torch
from etx_backend_arm.ethos_u.backend import EthosUPartitioner
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.lowering import lower_program
from etx_backend_arm.quantizer import TOSAQuantizer
from etx_exir import to_edge_transform_and_lower
from etx_quant import quantize, quantize_edges
from integers import integers
from lowered import delegates, lower_exported
from torch import Tensor, nn
from torch.export import ExportedProgram

F = torch.nn.functional


class Parts(nn.Module):
    """Parts of a tensor that are scaled, and scaled tensors that are parts of one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 24)

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.linear(x).chunk(2, -1)
        both = torch.sigmoid(first) * second
        return torch.cat([both + first, F.pad(both - second, (1, 2))], -1)


CASES: dict[str, nn.Module] = {
    "parts": Parts(),
    "conv": nn.Conv2d(3, 24, 3, padding=1),
    "stem": nn.Sequential(nn.Conv2d(3, 16, 5, stride=2, padding=2), nn.ReLU()),
    "dilated": nn.Conv2d(3, 8, 3, dilation=2),
    "dilated_deeply": nn.Sequential(nn.Conv2d(3, 18, 1), nn.Conv2d(18, 9, 5, dilation=2)),
    "wide": nn.Sequential(nn.Conv2d(3, 40, 1), nn.ReLU6(), nn.Conv2d(40, 20, 3, stride=3)),
    "depthwise": nn.Sequential(nn.Conv2d(3, 20, 1), nn.Conv2d(20, 20, 3, groups=20)),
    "tall": nn.Conv2d(3, 4, (11, 2)),
    "transposed": nn.ConvTranspose2d(3, 5, 3, stride=2, padding=1, output_padding=1),
    "avg_pool": nn.Sequential(nn.Conv2d(3, 18, 1), nn.AvgPool2d(3, 2)),
    "max_pool": nn.Sequential(nn.Conv2d(3, 18, 1), nn.MaxPool2d(3, 2, padding=1)),
    "linear": nn.Sequential(nn.Flatten(), nn.Linear(3 * 12 * 16, 10)),
    "gaps": nn.Sequential(nn.Conv2d(3, 18, 1), nn.MaxPool2d(3, 2, 1, 2)),
    "sums_on_the_way": test_forms.Whole(lambda x: x.cumsum(-1)),
    "rounded": test_forms.Whole(lambda x: torch.div(x * 9, 2.5, rounding_mode="floor")),
    "framed_twice": test_forms.Whole(
        lambda x: F.pad(F.pad(torch.sigmoid(x), (1, 0, 0, 0)), (0, 2, 0, 2))
    ),
    "framed_and_joined": nn.Sequential(
        nn.Conv2d(3, 2, 3, padding=1),
        test_forms.Whole(
            lambda x: torch.cat([F.pad(y, (1, 0, 0, 0)) for y in (torch.sigmoid(x), x * 5)], 1)
        ),
    ),
    "repeated_and_framed": test_forms.Whole(
        lambda x: F.pad(torch.sigmoid(x).repeat(1, 2, 1, 1), (1, 0, 0, 0))
    ),
    "numbers": test_forms.Whole(lambda x: x + torch.arange(16, dtype=torch.float32)),
}
FORMS = [
    "add",
    "add_broadcast",
    "amax",
    "amin",
    "average",
    "average_padded",
    "bmm",
    "concatenate_rows",
    "expand",
    "reverse",
    "maximum",
    "mean",
    "minimum",
    "multiply",
    "nearest_twice",
    "pad",
    "permute",
    "select",
    "sigmoid",
    "slice_rows",
    "softmax",
    "softmax_of_one",
    "bilinear",
    "layer_norm",
    "subtract",
    "sum",
    "unbind",
]
TARGETS = [
    "ethos-u55-32",
    "ethos-u55-64",
    "ethos-u55-128",
    "ethos-u55-256",
    "ethos-u65-256",
    "ethos-u65-512",
]


@cache
def prepared(model: nn.Module) -> tuple[nn.Module, Tensor]:
    """Return a model quantized, integers on its edges, and an input."""
    torch.manual_seed(0)
    shape = (1, 3, 12, 16)
    quantized = quantize(model.eval(), [(torch.randn(shape),) for _ in range(4)], TOSAQuantizer())
    quantize_edges(quantized)
    return quantized, torch.randint(-128, 128, shape, dtype=torch.int8)


EXPORTED: WeakKeyDictionary[nn.Module, ExportedProgram] = WeakKeyDictionary()


def exported(model: nn.Module, x: Tensor) -> ExportedProgram:
    """Export a model once."""
    if model not in EXPORTED:
        EXPORTED[model] = torch.export.export(model, (x,))
    return EXPORTED[model]


def compiled(model: nn.Module, x: Tensor, target: str) -> bytes:
    partitioner = EthosUPartitioner(EthosUCompileSpec(target))
    edge = to_edge_transform_and_lower(exported(model, x), partitioner=[partitioner])
    return bytes(edge.to_executorch().buffer)


def expected(model: nn.Module, x: Tensor) -> np.ndarray:
    (delegate,) = delegates(lower_exported(exported(model, x)))
    (result,) = reference_model.run(delegate.processed_bytes, x.numpy())
    return result


@pytest.mark.parametrize("name", CASES)
def test_operators_equal_the_reference_model(name: str) -> None:
    model, x = prepared(CASES[name])
    y = etx_runtime.load(compiled(model, x, "ethos-u55-128"))(x.numpy())
    np.testing.assert_array_equal(y, expected(model, x))


def run(name: str, target: str) -> None:
    model, inputs, _ = test_forms.lowered(name, "INT")
    program = torch.export.export(model, tuple(inputs))
    partitioner = EthosUPartitioner(EthosUCompileSpec(target))
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    (delegate,) = delegates(edge.exported_program("forward"))
    graph = lower_program(delegate.original_module, narrow_tables=True).serialize()
    arrays = [each.numpy() for each in inputs]
    made = etx_runtime.load(bytes(edge.to_executorch().buffer))(*arrays)
    actual = made if isinstance(made, list) else [made]
    for ours, theirs in zip(actual, reference_model.run(graph, *arrays), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", FORMS)
def test_forms_equal_the_reference_model(name: str) -> None:
    run(name, "ethos-u55-128")


@pytest.mark.parametrize("target", [each for each in TARGETS if each != "ethos-u55-128"])
def test_tables_and_sums_on_other_sizes(target: str) -> None:
    for name in ("sigmoid", "add", "sum"):
        run(name, target)


@pytest.mark.parametrize("name", ["ic", "vww"])
def test_tiny_networks_are_one_delegate(name: str) -> None:
    network = tiny.make(name, 4)
    model = quantize(network.model, network.inputs, TOSAQuantizer())
    quantize_edges(model)
    x = integers(*tiny.SHAPES[name])
    y = etx_runtime.load(compiled(model, x, "ethos-u55-128"))(x.numpy())
    np.testing.assert_array_equal(y, expected(model, x))


@pytest.mark.parametrize("target", TARGETS)
def test_a_network_equals_the_reference_model(target: str) -> None:
    model, (x, other) = keyword_spotting.quantized(), keyword_spotting.samples(2)
    method = etx_runtime.load(compiled(model, x, target))
    np.testing.assert_array_equal(method(x.numpy()), expected(model, x))
    np.testing.assert_array_equal(method(other.numpy()), expected(model, other))


def test_another_npu_is_refused_at_load() -> None:
    model, x = prepared(CASES["conv"])
    program = compiled(model, x, "ethos-u85-128")
    reason = "it is for an Ethos-U85; the simulator is an Ethos-U55 or U65"
    with pytest.raises(etx_runtime.LoadError, match=reason):
        etx_runtime.load(program)(x.numpy())
