# SPDX-License-Identifier: BSD-3-Clause
"""Models that ``torchao.quantize_`` quantizes become the same operators as those of etx-quant."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import etx_runtime
import pytest
import torch
from etx_exir import EdgeProgramManager, ExecutorchBackendConfig, compile, to_edge
from etx_schema import KernelCall, PteFile, serialize_pte
from etx_schema.operator_names import operator_name
from torch import Tensor, nn
from torchao.quantization import (
    Int8DynActInt4WeightQuantizer,
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    MappingType,
    PerAxis,
    PerGroup,
    PerTensor,
    quantize_,
)
from torchao.utils import unwrap_tensor_subclass

DYNAMIC, DYNAMIC_INT4 = "etx::dynamic_linear.out", "etx::dynamic_linear_int4.out"
WEIGHTS, WEIGHTS_INT4 = "etx::weight_only_linear.out", "etx::weight_only_linear_int4.out"


def dynamic(bits: torch.dtype, granularity: Any, **others: Any) -> Any:
    return Int8DynamicActivationIntxWeightConfig(
        weight_dtype=bits, weight_granularity=granularity, **others
    )


def weights(bits: torch.dtype, granularity: Any, **others: Any) -> Any:
    return IntxWeightOnlyConfig(weight_dtype=bits, granularity=granularity, **others)


INTEGER = {
    "int8 weights": (Int8WeightOnlyConfig(), WEIGHTS),
    "8w, channels": (weights(torch.int8, PerAxis(0)), WEIGHTS),
    "4w, channels": (weights(torch.int4, PerAxis(0)), WEIGHTS_INT4),
    "4w, groups": (weights(torch.int4, PerGroup(32)), WEIGHTS_INT4),
    "2w, groups": (weights(torch.int2, PerGroup(32)), WEIGHTS_INT4),
    "8da8w, by _int_mm": (Int8DynamicActivationInt8WeightConfig(), DYNAMIC),
    "8da8w, by _int_mm, zero points": (
        Int8DynamicActivationInt8WeightConfig(act_mapping_type=MappingType.ASYMMETRIC),
        DYNAMIC,
    ),
    "8da8w": (dynamic(torch.int8, PerAxis(0)), DYNAMIC),
    "8da4w, channels": (dynamic(torch.int4, PerAxis(0)), DYNAMIC_INT4),
    "8da4w, groups": (dynamic(torch.int4, PerGroup(32)), DYNAMIC_INT4),
    "8da4w, all of int4": (
        dynamic(
            torch.int4,
            PerGroup(64),
            weight_mapping_type=MappingType.SYMMETRIC_NO_CLIPPING_ERR,
        ),
        DYNAMIC_INT4,
    ),
    "8da4w, scales of two bytes": (
        dynamic(torch.int4, PerGroup(32), weight_scale_dtype=torch.bfloat16),
        DYNAMIC_INT4,
    ),
}
WIDER = ("8da8w, by _int_mm",)
SYMMETRIC = 2e-2
"""What rows between -max|x| and max|x| differ by from those of the range that they have."""
IN_FLOAT = {
    "8da8w, by _int_mm, of tensors": Int8DynamicActivationInt8WeightConfig(granularity=PerTensor()),
    "8da4w, zero points": dynamic(
        torch.int4, PerGroup(32), weight_mapping_type=MappingType.ASYMMETRIC
    ),
    "8w, groups": weights(torch.int8, PerGroup(32)),
}
"""Forms that no integer operator has: they run, and dequantize weights at each call."""
CONFIGS = {name: config for name, (config, _) in INTEGER.items()} | IN_FLOAT
BYTES = 128 * 192 + 192 * 64
SCALES = 4 * (BYTES // 32 + 192 + 64) * 2
PROGRAM = 20_000


def quantized(config: Any, dtype: torch.dtype = torch.float32) -> tuple[Any, Any, Any]:
    """Return a program with a dynamic number of rows, inputs and what eager makes of them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 192), nn.SiLU(), nn.Linear(192, 64)).eval().to(dtype)
    x = torch.randn(2, 10, 128, dtype=dtype)
    quantize_(model, config)
    rows = torch.export.Dim("rows", max=16)
    with torch.no_grad():
        return torch.export.export(model, (x,), dynamic_shapes=({1: rows},)), x, model(x)


@cache
def lowered(name: str) -> tuple[EdgeProgramManager, Any, Any]:
    """Return the edge program of a row, inputs and what eager makes of them."""
    program, x, expected = quantized(CONFIGS[name])
    return to_edge(program), x, expected


@cache
def for_etx(name: str) -> Any:
    """Return a row's file for the target etx."""
    return lowered(name)[0].to_executorch()


def operators(pte: PteFile) -> list[str]:
    (plan,) = pte.program.execution_plan
    calls = [step.instr_args for step in plan.chains[0].instructions]
    return [operator_name(plan, call.op_index) for call in calls if isinstance(call, KernelCall)]


@pytest.mark.parametrize("name", CONFIGS)
def test_compiles_and_runs(name: str) -> None:
    _, x, expected = lowered(name)
    buffer = for_etx(name).buffer
    got = torch.as_tensor(etx_runtime.load(buffer)(x))
    near = SYMMETRIC if name in WIDER else 1e-5
    torch.testing.assert_close(got, expected, rtol=near, atol=near)
    assert len(buffer) < BYTES + SCALES + PROGRAM


@pytest.mark.parametrize("name", INTEGER)
def test_weights_are_read_as_integers(name: str) -> None:
    """No instruction makes a float of them, and int4 takes half a byte."""
    _, operator = INTEGER[name]
    result = for_etx(name)
    assert operators(result.pte_file).count(operator) == 2
    assert not any("dequantize" in name for name in operators(result.pte_file))
    stored = BYTES // 2 + SCALES if "int4" in operator else BYTES + SCALES
    assert sum(map(len, result.pte_file.constants)) < stored
    (plan,) = result.pte_file.program.execution_plan
    assert sum(plan.non_const_buffer_sizes) < 3 * 4 * 32 * 192


def test_rows_of_positive_numbers_have_their_whole_range() -> None:
    torch.manual_seed(0)
    layer, x = nn.Linear(128, 64).eval(), torch.rand(10, 128)
    real = layer(x)
    quantize_(layer, Int8DynamicActivationInt8WeightConfig())
    program = torch.export.export(layer, (x,))
    found = torch.as_tensor(etx_runtime.load(compile(program).buffer)(x))
    assert (found - real).norm() < 0.8 * (layer(x) - real).norm()
    result = to_edge(program).to_executorch()
    assert operators(result.pte_file) == [DYNAMIC]  # which adds the bias, too


@pytest.mark.parametrize("shape", [(128,), (1, 128), (2, 3, 128), (2, 1, 3, 128)])
@pytest.mark.parametrize("bias", [False, True])
def test_rows_of_any_shape(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    layer, x = nn.Linear(128, 64, bias=bias).eval(), torch.randn(shape)
    quantize_(layer, Int8DynamicActivationInt8WeightConfig(act_mapping_type=MappingType.ASYMMETRIC))
    program = torch.export.export(layer, (x,))
    result = to_edge(program).to_executorch()
    assert DYNAMIC in operators(result.pte_file)
    got = torch.as_tensor(etx_runtime.load(result.buffer)(x))
    torch.testing.assert_close(got, layer(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", INTEGER)
def test_a_file_for_both_runtimes(name: str) -> None:
    edge, x, expected = lowered(name)
    result = edge.to_executorch(ExecutorchBackendConfig(target="executorch"))
    assert not any(name.startswith("etx::") for name in operators(result.pte_file))
    got = torch.as_tensor(etx_runtime.load(serialize_pte(result.pte_file))(x))
    near = SYMMETRIC / 2 if name in WIDER else 1e-3  # the zero point may be -1
    torch.testing.assert_close(got, expected, rtol=near, atol=near)


HALVES = (torch.bfloat16, torch.float16)
SEED = int(os.environ.get("ETX_SEED", "0"))


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, HALVES[(i + SEED) % 2]) for i, name in enumerate(INTEGER)]
)
def test_a_model_in_half_precision(name: str, dtype: torch.dtype) -> None:
    """One type or the other in turn: another ETX_SEED has the other one."""
    config, operator = INTEGER[name]
    program, x, expected = quantized(config, dtype)
    result = to_edge(program).to_executorch()
    assert operators(result.pte_file).count(operator) == 2
    got = torch.as_tensor(etx_runtime.load(result.buffer)(x))
    assert got.dtype is dtype
    torch.testing.assert_close(got, expected, rtol=2e-2, atol=2e-2)


def test_layers_that_quantize_without_gradients() -> None:
    """Those that torchao's older quantizer swaps in: a part of their graph is nested."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32, bias=False), nn.Linear(32, 64, bias=False)).eval()
    model = Int8DynActInt4WeightQuantizer(groupsize=32).quantize(model)
    x = torch.randn(3, 64)
    result = to_edge(torch.export.export(model, (x,))).to_executorch()
    assert operators(result.pte_file) == [DYNAMIC_INT4] * 2
    got = torch.as_tensor(etx_runtime.load(result.buffer)(x))
    torch.testing.assert_close(got, model(x), rtol=1e-5, atol=1e-5)


class Branches(nn.Module):
    """A layer in the one branch, and in the other one."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 32)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, self.layer, lambda x: self.layer(x * 2) - 1, (x,))


@pytest.mark.parametrize("sign", [1, -1])
def test_weights_in_branches_are_read_as_integers(sign: int) -> None:
    model = Branches().eval()
    quantize_(model, dynamic(torch.int4, PerGroup(32)))
    model = unwrap_tensor_subclass(model)
    x = sign * torch.rand(3, 64, generator=torch.Generator().manual_seed(0))
    result = to_edge(torch.export.export(model, (x,))).to_executorch()
    (plan,) = result.pte_file.program.execution_plan
    names = {operator.name for operator in plan.operators}
    assert "etx::dynamic_linear_int4" in names
    assert not any("dequantize" in name for name in names)
    got = torch.as_tensor(etx_runtime.load(result.buffer)(x))
    torch.testing.assert_close(got, model(x), rtol=1e-5, atol=1e-5)


TABLES = {
    "int8, channels": (torch.int8, PerAxis(0), "embedding_byte"),
    "int8, groups": (torch.int8, PerGroup(32), "embedding_byte"),
    "int4, channels": (torch.int4, PerAxis(0), "embedding_4bit"),
    "int4, groups": (torch.int4, PerGroup(32), "embedding_4bit"),
    "int2, groups": (torch.int2, PerGroup(32), "embedding_2bit"),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", TABLES)
def test_rows_of_a_table_are_dequantized_as_they_are_read(name: str, dtype: torch.dtype) -> None:
    bits, granularity, operator = TABLES[name]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(50, 64), nn.SiLU()).to(dtype)
    config = weights(bits, granularity)
    quantize_(model, config, lambda module, _: isinstance(module, nn.Embedding))
    x = torch.tensor([[1, 2, 49]])
    result = to_edge(torch.export.export(model, (x,))).to_executorch()
    assert operators(result.pte_file)[0] == f"quantized_decomposed::{operator}.out"
    got = torch.as_tensor(etx_runtime.load(result.buffer)(x))
    near = 1e-5 if dtype is torch.float32 else 2e-2
    torch.testing.assert_close(got, model(x), rtol=near, atol=near)


class Rounded(nn.Module):
    """What torchao's operators make of a tensor in blocks, and its scales where they are asked."""

    def __init__(self, block: tuple[int, ...], mapping: str, low: int, scales: bool) -> None:
        super().__init__()
        self.block, self.mapping, self.low, self.scales = block, mapping, low, scales

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        ops, bounds = torch.ops.torchao, (self.low, 127)
        scale, zero = ops.choose_qparams_affine(
            x, self.mapping, self.block, torch.int8, *bounds, 1e-5, torch.float32, torch.int8
        )
        values = ops.quantize_affine(x, self.block, scale, zero, torch.int8, *bounds)
        real = ops.dequantize_affine(values, self.block, scale, zero, torch.int8, *bounds)
        return (real, scale) if self.scales else (real,)


@pytest.mark.parametrize("scales", [False, True])
@pytest.mark.parametrize("low", [-128, -127])
@pytest.mark.parametrize("mapping", ["ASYMMETRIC", "SYMMETRIC"])
@pytest.mark.parametrize("block", [(1, 12), (1, 4), (6, 12), (2, 12), (6, 1)])
def test_any_blocks_of_an_activation(
    block: tuple[int, ...], mapping: str, low: int, scales: bool
) -> None:
    """Those of one row each are the flow's own operators; ties may be rounded otherwise there."""
    x = torch.randn(6, 12, generator=torch.Generator().manual_seed(0))
    model = Rounded(block, mapping, low, scales)
    expected = model(x)
    found = compile(torch.export.export(model, (x,))).buffer
    program = etx_runtime.load(found)
    got = program(x)
    got = got if isinstance(got, tuple) else (got,)
    for one, other in zip(map(torch.as_tensor, got), expected, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=1e-5, atol=float(x.abs().max()) / 100)
