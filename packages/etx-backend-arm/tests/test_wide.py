# SPDX-License-Identifier: BSD-3-Clause
"""Activations of 16 bits, weights of 8 or 4, next to TOSA's reference model."""

from __future__ import annotations

from collections.abc import Callable

import etx_runtime
import numpy as np
import pytest
import reference_model
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.ethos_u.backend import EthosUPartitioner, EthosUQuantizer
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.lowering import lower_program
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import (
    TOSAQuantizer,
    get_symmetric_a8w4_quantization_config,
    get_symmetric_a16w8_quantization_config,
)
from etx_backend_arm.tosa import DType, read_tosa
from etx_exir import to_edge_transform_and_lower
from etx_exir.errors import BackendError
from etx_quant import quantize, quantize_edges
from integers import Between, integers
from lowered import delegates, interpreted, largest_step, lower
from test_forms import MANY, MOVES, TABLES
from torch import Tensor, nn

F = torch.nn.functional
WIDE = TosaCompileSpec("TOSA-1.0+INT+int16+int4")
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "conv": lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.ReLU()),
    "depthwise": lambda: nn.Sequential(nn.Conv2d(3, 6, 3, groups=3), nn.Hardtanh(-0.4, 0.4)),
    "linear": lambda: nn.Sequential(nn.Linear(16, 5), nn.ReLU(), nn.Linear(5, 4, bias=False)),
    "pools": lambda: nn.Sequential(nn.Conv2d(3, 8, 1), nn.MaxPool2d(2), nn.AvgPool2d(3, 2)),
    "mean": lambda: nn.Sequential(nn.Conv2d(3, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
}
OPERATORS = [
    "add",
    "add_broadcast",
    "amax",
    "amin",
    "bmm",
    "layer_norm",
    "layer_norm_long",
    "layer_norm_planes",
    "matmul",
    "mean",
    "mean_channels",
    "multiply",
    "softmax",
    "softmax_channels",
    "softmax_long",
    "softmax_of_one",
    "subtract",
    "sum",
]
STEPS = {
    **dict.fromkeys(("arctangent", "bmm", "matmul", "softmax", "softmax_long", "tanh"), 2),
    "sine": 3,
}
"""By how many of 65,536 steps, others by one: TABLE interpolates between each 128th, and RESCALE of
int48 has multipliers of 16 bits."""
ENCODER_STEPS = 8
"""Of 65,536, through some 30 operators."""
CHAINED = {"linear": 2, "mean": 2}
"""Of 16 bits, where one such RESCALE follows another."""


@pytest.mark.parametrize("config", ["a16w8", "a8w4"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_a_step_from_the_quantized_model(name: str, config: str) -> None:
    torch.manual_seed(0)
    shape = (2, 3, 12, 16)
    chosen = (
        get_symmetric_a16w8_quantization_config()
        if config == "a16w8"
        else get_symmetric_a8w4_quantization_config(is_qat=False)
    )
    quantizer = TOSAQuantizer(WIDE)
    quantizer.set_global(chosen)
    model = quantize(LAYERS[name]().eval(), [(torch.randn(shape),) for _ in range(4)], quantizer)
    quantize_edges(model)
    x = integers(*shape, dtype=torch.int16 if config == "a16w8" else torch.int8)
    (delegate,) = delegates(lower(model, x, partitioner=TOSAPartitioner(WIDE)))
    graph = delegate.processed_bytes
    assert largest_step(graph, model, x) <= (CHAINED.get(name, 1) if config == "a16w8" else 1)
    types = {tensor.type for tensor in read_tosa(graph).regions[0].blocks[0].tensors}
    assert (DType.INT4 in types) == (config == "a8w4")
    assert (DType.INT48 in types) == (config == "a16w8")


def wide(name: str) -> tuple[nn.Module, list[Tensor]]:
    function, shapes = MANY[name]
    inputs = [integers(*shape, seed=i, dtype=torch.int16) for i, shape in enumerate(shapes)]
    return Between(function, *inputs).eval(), inputs


@pytest.mark.parametrize("name", [*OPERATORS, *sorted(TABLES), *MOVES])
def test_operators_of_16_bits(name: str) -> None:
    model, inputs = wide(name)
    (delegate,) = delegates(lower(model, *inputs, partitioner=TOSAPartitioner(WIDE)))
    made = model(*inputs)
    expected = made if isinstance(made, list) else [made]
    arrays = [each.numpy() for each in inputs]
    for actual, other in zip(
        reference_model.run(delegate.processed_bytes, *arrays), expected, strict=True
    ):
        steps = np.abs(actual.astype(int) - other.numpy().astype(int)).max()
        assert steps <= STEPS.get(name, 1)


NORMS: dict[str, tuple[int, float, dict[str, float]]] = {
    "rows": (64, 2e-4, {}),
    "of_eps": (64, 1e-6, {}),
    "long_of_eps": (2048, 1e-6, {}),
    "parameters": (64, 2e-4, {"weight": 9.0, "bias": 3.0}),
    "bias_alone": (64, 2e-4, {"bias": 3000.0}),
    "bias_above_weight": (64, 2e-4, {"weight": 1e-3, "bias": 3000.0}),
}
"""Elements of a row, the scale of a step of int16, and how large parameters are."""


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16])
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_small_rows_beside_large_ones(name: str, dtype: torch.dtype) -> None:
    size, scale, reach = NORMS[name]
    random = torch.Generator().manual_seed(0)
    given = {key: torch.randn(size, generator=random) * each for key, each in reach.items()}
    x = torch.randn(7, size, generator=random)
    x *= torch.tensor([8, 4, 1, 0.2, 0.02, 0, 0]).unsqueeze(1) * 1000
    x[-1] = 7777
    x = (x / (1 if dtype == torch.int16 else 256)).round().to(dtype)
    model = Between(
        lambda x: F.layer_norm(x, (size,), given.get("weight"), given.get("bias")),
        x,
        scale=scale * 256,
    )
    (delegate,) = delegates(lower(model.eval(), x, partitioner=TOSAPartitioner(WIDE)))
    assert largest_step(delegate.processed_bytes, model, x) <= 1


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1.0, 1e6])
def test_softmax_of_any_scale(scale: float) -> None:
    x = integers(3, 20, dtype=torch.int16)
    model = Between(lambda x: torch.softmax(x, -1), x, scale=scale * 256).eval()
    (delegate,) = delegates(lower(model, x, partitioner=TOSAPartitioner(WIDE)))
    for has_narrow_tables in (False, True):
        graph = lower_program(delegate.original_module, has_narrow_tables)
        assert largest_step(graph.serialize(), model, x) <= 2


def test_an_encoder_of_16_bits_is_one_delegate() -> None:
    torch.manual_seed(0)
    quantizer = TOSAQuantizer(WIDE)
    quantizer.set_global(get_symmetric_a16w8_quantization_config())
    layer = nn.TransformerEncoderLayer(16, 2, 16, batch_first=True).eval()
    batches = [(torch.randn(1, 5, 16),) for _ in range(2)]
    model = quantize(layer, batches, quantizer)
    quantize_edges(model)
    x = integers(1, 5, 16, dtype=torch.int16) // 4
    (delegate,) = delegates(lower(model, x, partitioner=TOSAPartitioner(WIDE)))
    assert largest_step(delegate.processed_bytes, model, x) <= ENCODER_STEPS


NPU = EthosUCompileSpec("ethos-u55-128")


@pytest.mark.parametrize("name", ["conv", "depthwise", "mean"])
def test_an_npu_has_layers_of_16_bits(name: str) -> None:
    torch.manual_seed(0)
    shape = (1, 3, 12, 16)
    quantizer = EthosUQuantizer(NPU)
    quantizer.set_global(get_symmetric_a16w8_quantization_config())
    model = quantize(LAYERS[name]().eval(), [(torch.randn(shape),) for _ in range(4)], quantizer)
    quantize_edges(model)
    on_npu(model, integers(*shape, dtype=torch.int16))


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "add_broadcast",
        "amax",
        "layer_norm",
        "maximum",
        "multiply",
        "pad",
        "softmax",
        "softmax_long",
        "subtract",
        "sum",
    ],
)
def test_an_npu_has_operators_of_16_bits(name: str) -> None:
    model, inputs = wide(name)
    on_npu(model, *inputs)


def on_npu(model: nn.Module, *inputs: Tensor) -> None:
    """Compare the simulator with the reference model."""
    exported = torch.export.export(model, inputs)
    edge = to_edge_transform_and_lower(exported, partitioner=[EthosUPartitioner(NPU)])
    program = edge.exported_program("forward")
    assert len(delegates(program)) == 1
    made = etx_runtime.load(bytes(edge.to_executorch().buffer))(*(x.numpy() for x in inputs))
    expected = interpreted(
        program, *inputs, graph_of=lambda d: lower_program(d.original_module, True).serialize()
    )
    for actual, other in zip(made if isinstance(made, list) else [made], expected, strict=True):
        np.testing.assert_array_equal(actual, other)


def test_parts_of_products_of_16_bits() -> None:
    class Parts(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.cat([(x * y)[:, 1:3], (x + y)[:, :2]], 1)

    quantizer = EthosUQuantizer(NPU)
    quantizer.set_global(get_symmetric_a16w8_quantization_config())
    torch.manual_seed(0)
    batches = [(torch.randn(2, 4, 5), torch.randn(2, 4, 5)) for _ in range(4)]
    model = quantize(Parts().eval(), batches, quantizer)
    quantize_edges(model)
    on_npu(model, *(integers(2, 4, 5, seed=i, dtype=torch.int16) for i in range(2)))


def test_sums_of_sums_of_16_bits() -> None:
    inputs = [integers(2, 3, 5, seed=i, dtype=torch.int16) for i in range(3)]
    on_npu(Between(lambda x, y, z: [x + y, (y - z) * x], *inputs).eval(), *inputs)


@pytest.mark.parametrize("name", ["bmm", "matmul"])
def test_what_vela_has_not_in_16_bits_stays_outside(name: str) -> None:
    model, inputs = wide(name)
    assert delegates(lower(model, *inputs, partitioner=EthosUPartitioner(NPU))) == []


def test_16_bits_need_the_extension() -> None:
    model, inputs = wide("add")
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+INT"))
    program = lower(model, *inputs, partitioner=partitioner)
    assert delegates(program) == []
    (reason,) = {
        partitioner.why_not(n) for n in program.graph.nodes if n.target is torch.ops.aten.add.Tensor
    }
    assert reason is not None
    assert "which TOSA-1.0+INT has not: add +int16" in reason


def test_unknown_extensions_are_refused() -> None:
    with pytest.raises(BackendError, match=r"'TOSA-1.0\+INT\+int5'; expected .*int16\+int4"):
        TosaCompileSpec("TOSA-1.0+INT+int5")
