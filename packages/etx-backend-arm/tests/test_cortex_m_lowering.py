# SPDX-License-Identifier: BSD-3-Clause
"""Quantized networks become `cortex_m::` operators, whose kernels compute what torch does."""

from __future__ import annotations

from collections.abc import Callable

import etx_runtime
import numpy as np
import pytest
import tiny
import torch
from etx_backend_arm.cortex_m import CortexMQuantizer, lower_to_cortex_m
from etx_backend_arm.cortex_m import operators as ops
from etx_backend_arm.cortex_m.fixed_point import factor
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

aten = torch.ops.aten
MULTIPLIERS = st.tuples(st.integers(2**30, 2**31 - 1), st.integers(-31, 1)) | st.sampled_from(
    [(2**30, 0), (2**31 - 1, 0), (2**30, -31), (0, 0)]
)


class Call(nn.Module):
    """One operator, of one tensor and constants."""

    def __init__(self, operator: object, args: tuple[object, ...]) -> None:
        super().__init__()
        self.operator = operator
        self.places = []
        for i, arg in enumerate(args):
            if isinstance(arg, torch.Tensor):
                self.register_buffer(f"constant{i}", arg)
            self.places.append(f"constant{i}" if isinstance(arg, torch.Tensor) else arg)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        args = [getattr(self, p) if isinstance(p, str) else p for p in self.places]
        return self.operator(x, *args)


def both(operator: object, x: torch.Tensor, *args: object) -> tuple[np.ndarray, np.ndarray]:
    """Return what the kernel and what the definition in torch compute."""
    program = to_edge(torch.export.export(Call(operator, args), (x,)))
    config = ExecutorchBackendConfig(target=None)
    model = etx_runtime.load(program.to_executorch(config).buffer)
    return np.asarray(model(x.numpy())), operator(x, *args).numpy()


def integers(seed: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-128, 128, shape, dtype=torch.int8, generator=generator)


@given(
    seed=st.integers(0, 2**16),
    sizes=st.tuples(*[st.integers(1, 9)] * 2, *[st.integers(1, 3)] * 4),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
    offset=st.integers(-127, 128),
    pair=MULTIPLIERS,
    kind=st.sampled_from(["conv", "depthwise"]),
)
@settings(max_examples=12, deadline=None)
def test_convolutions(
    seed: int,
    sizes: tuple[int, ...],
    stride: int,
    dilation: int,
    offset: int,
    pair: tuple[int, int],
    kind: str,
) -> None:
    height, width, kernel, depth, groups, padding = sizes
    span = dilation * (kernel - 1) + 1
    x = integers(seed, 1, height + span, width + span, depth * groups)
    outputs = groups * depth * 2
    multipliers = torch.full((outputs,), pair[0], dtype=torch.int32)
    shifts = torch.full((outputs,), pair[1], dtype=torch.int32)
    bias = integers(seed + 1, outputs).int() * 37
    window = ([stride, 1], [padding, 0], [dilation, dilation])
    numbers = (multipliers, shifts, -128, 120, torch.empty(0, dtype=torch.uint8))
    if kind == "conv":
        weight = integers(seed + 2, outputs, kernel, kernel, depth)
        args = (weight, bias, *window, offset, 3, *numbers)
        actual, expected = both(ops.CONV2D, x, *args)
    else:
        weight = integers(seed + 2, 1, kernel, kernel, outputs)
        args = (weight, bias, *window, 2, offset, 3, *numbers)
        actual, expected = both(ops.DEPTHWISE_CONV2D, x, *args)
    np.testing.assert_array_equal(actual, expected)


@given(seed=st.integers(0, 2**16), depth=st.integers(1, 40), pair=MULTIPLIERS)
@settings(max_examples=2, deadline=None)
def test_linear(seed: int, depth: int, pair: tuple[int, int]) -> None:
    weight, start = integers(seed, 7, depth), integers(seed, 7).int() * 100
    x = integers(seed + 1, 3, depth)
    numbers = ([pair[0]] * 7, [pair[1]] * 7, 127, -128)
    for given_sums in ((start, None), (None, start), (None, None)):
        actual, expected = both(ops.LINEAR, x, weight, *given_sums, 5, 0, -3, *numbers)
        np.testing.assert_array_equal(actual, expected)


@given(seed=st.integers(0, 2**16), scales=st.tuples(*[st.floats(1e-4, 4)] * 3))
@settings(max_examples=2, deadline=None)
def test_add(seed: int, scales: tuple[float, float, float]) -> None:
    most = 2 * max(scales[:2])
    pairs = (factor(scales[0] / most), factor(scales[1] / most), factor(most / 2**20 / scales[2]))
    x, y = integers(seed, 4, 33), integers(seed + 1, 4, 33)
    args = (3, *pairs[0], y, -5, *pairs[1], 7, *pairs[2], -100, 127)
    actual, expected = both(ops.ADD, x, *args)
    np.testing.assert_array_equal(actual, expected)


@given(
    seed=st.integers(0, 2**16),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    pair=st.tuples(st.integers(2**30, 2**31 - 1), st.integers(-12, 2)),
)
@settings(max_examples=6, deadline=None)
def test_pools(seed: int, kernel: tuple[int, int], pair: tuple[int, int]) -> None:
    x = integers(seed, 2, 9, 8, 3)
    window = (list(kernel), [2, 1], [kernel[0] // 2, 0])
    actual, expected = both(ops.MAX_POOL2D, x, *window, [1, 1], False, 4, 4, -90, 100)
    np.testing.assert_array_equal(actual, expected)
    none = torch.empty(0, dtype=torch.uint8)
    actual, expected = both(ops.AVG_POOL2D, x, *window, False, -7, *pair, none)
    np.testing.assert_array_equal(actual, expected)


def test_quantize_dequantize_and_table() -> None:
    x = torch.linspace(-9, 9, 1001).repeat(2, 1)
    actual, expected = both(ops.QUANTIZE, x, 0.0625, 3, -128, 127, torch.int8)
    np.testing.assert_array_equal(actual, expected)
    q = torch.arange(-128, 128, dtype=torch.int8)
    actual, expected = both(ops.DEQUANTIZE, q, 0.1, 3, -128, 127, torch.float32)
    np.testing.assert_array_equal(actual, expected)
    actual, expected = both(ops.ACTIVATION, q, q.flip(0))
    np.testing.assert_array_equal(actual, expected)


ROWS = {
    "mul": (ops.MUL, (4, 33), 3, integers(1, 4, 33), -9, 5, 1518500250, -7),
    "div": (ops.DIV, (9, 33), 3, integers(1, 9, 33), -9, 5, 7.3),
    "minimum": (ops.MINIMUM, (4, 33), integers(1, 4, 33)),
    "maximum": (ops.MAXIMUM, (4, 33), integers(1, 4, 33)),
    "softmax": (ops.SOFTMAX, (5, 10), -1, 7, -128, 1717986944, 22, -124),
    "softmax_of_columns": (ops.SOFTMAX, (5, 10), 0, 7, -128, 1717986944, 25, -124),
    "softmax_of_ties": (ops.SOFTMAX, (2, 512), 1, 0, -128, 2**30, -31, -124),
    "transpose": (ops.TRANSPOSE, (2, 3, 4, 5), [3, 0, -2, 1]),
    "products": (ops.BATCH_MATMUL, (3, 4, 21), 5, integers(1, 3, 6, 21), 0, 3, 2**30 + 9, -7),
    "offsets": (ops.BATCH_MATMUL, (3, 4, 21), 5, integers(1, 3, 6, 21), -128, 3, 2**30, -7),
}


@pytest.mark.parametrize("name", ROWS)
def test_other_operators(name: str) -> None:
    operator, shape, *args = ROWS[name]
    scratch = [torch.empty(0, dtype=torch.uint8)] if operator is ops.BATCH_MATMUL else []
    actual, expected = both(operator, integers(7, *shape), *args, *scratch)
    np.testing.assert_array_equal(actual, expected)


@given(
    seed=st.integers(0, 2**16),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.integers(1, 2),
    offset=st.integers(-127, 128),
    pair=MULTIPLIERS,
)
@settings(max_examples=4, deadline=None)
def test_transposed_convolutions(
    seed: int,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: int,
    offset: int,
    pair: tuple[int, int],
) -> None:
    x, weight = integers(seed, 2, 4, 3, 3), integers(seed + 1, 5, *kernel, 3)
    multipliers = torch.full((5,), pair[0], dtype=torch.int32)
    shifts = torch.full((5,), pair[1], dtype=torch.int32)
    none = torch.empty(0, dtype=torch.uint8)
    more = [stride[0] - 1, 0]
    window = (list(stride), [kernel[0] // 2, 0], more, [dilation, dilation])
    numbers = (offset, -3, multipliers, shifts, -120, 127, none, none)
    bias = integers(seed + 2, 5).int() * 37
    actual, expected = both(ops.TRANSPOSE_CONV2D, x, weight, bias, *window, *numbers)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", ["kws", "ic"])
def test_networks_are_within_a_step_of_the_quantized_model(name: str) -> None:
    network = tiny.make(name, 4)
    model = quantize(network.model, network.inputs, CortexMQuantizer())
    (x,) = network.inputs[0]
    edge = lower_to_cortex_m(to_edge(torch.export.export(model, (x,))))
    graph = edge.exported_program().graph
    targets = {str(n.target) for n in graph.nodes if n.op == "call_function"}
    integer = {target for target in targets if target.startswith("cortex_m.")}
    assert not {target for target in targets if target.startswith(("etx.", "quantized_"))}
    assert len(integer) >= 3
    program = etx_runtime.load(edge.to_executorch(ExecutorchBackendConfig(target=None)).buffer)
    actual = np.asarray(program(x.numpy()))
    np.testing.assert_array_equal(actual, edge.exported_program().module()(x).numpy())
    (last,) = [n for n in graph.nodes if n.target is ops.DEQUANTIZE]
    scale = float(last.args[1])
    np.testing.assert_allclose(actual, model(x).detach().numpy(), rtol=0, atol=1.01 * scale)


class Gated(nn.Module):
    """Products, smaller and larger of two layers' results."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(12, 16), nn.Linear(12, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, b = self.a(x), self.b(x)
        return torch.maximum(torch.minimum(a * b, a), b)


class Attention(nn.Module):
    """One head: two products of activations, and softmax between them."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(12, 12) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = torch.bmm(self.q(x), self.k(x).transpose(1, 2))
        return torch.bmm(scores.softmax(-1), self.v(x))


class Heads(Attention):
    """Two heads: views between the products and their scales."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part(x).view(2, 7, 2, 6).transpose(1, 2) for part in (self.q, self.k, self.v))
        scores = torch.matmul(q, k.transpose(2, 3))
        return torch.matmul(scores.softmax(-1), v)


class Causal(Attention):
    """Each position reads those before it, by PyTorch's own operator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = (part(x)[:, None] for part in (self.q, self.k, self.v))
        return nn.functional.scaled_dot_product_attention(*parts, is_causal=True)


class Filled(Attention):
    """The same by a mask."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(self.q(x), self.k(x).transpose(1, 2))
        later = torch.ones(7, 7, dtype=torch.bool).triu(1)
        return torch.matmul(scores.masked_fill(later, -torch.inf).softmax(-1), self.v(x))


MASKED = {ops.ADD, ops.BATCH_MATMUL, ops.SOFTMAX}


@pytest.mark.parametrize(
    ("network", "steps", "expected"),
    [
        (Causal, 2, MASKED),
        (Filled, 2, MASKED),
        (Gated, 1, {ops.MUL, ops.MINIMUM, ops.MAXIMUM}),
        (Attention, 2, {ops.BATCH_MATMUL, ops.SOFTMAX, ops.TRANSPOSE}),
        (Heads, 2, {ops.BATCH_MATMUL, ops.SOFTMAX, ops.TRANSPOSE}),
    ],
)
def test_activations_meet_in_integers(
    network: type[nn.Module], steps: int, expected: set[object]
) -> None:
    """Shares a step apart may move a sum of them by one more."""
    torch.manual_seed(3)
    inputs = [(torch.randn(2, 7, 12),) for _ in range(8)]
    model = quantize(network().eval(), inputs, CortexMQuantizer())
    (x,) = inputs[0]
    edge = lower_to_cortex_m(to_edge(torch.export.export(model, (x,))))
    calls = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    assert expected <= {n.target for n in calls}
    assert sum(n.meta["val"].dtype == torch.float32 for n in calls) == 1
    program = etx_runtime.load(edge.to_executorch(ExecutorchBackendConfig(target=None)).buffer)
    actual = np.asarray(program(x.numpy()))
    (last,) = [n for n in calls if n.target is ops.DEQUANTIZE]
    atol = (steps + 0.01) * float(last.args[1])
    np.testing.assert_allclose(actual, model(x).detach().numpy(), rtol=0, atol=atol)


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x.amin(1),
        lambda x: x.gather(1, torch.tensor([[[3], [0], [1]]])),
        lambda x: x.index_select(2, torch.tensor([3, 0, 1])),
        lambda x: x.repeat_interleave(2, 1),
        lambda x: aten.as_strided_copy(x, [2, 3], [1, 2], 1),
        lambda x: aten.expand_copy(x[:, :1], [-1, 5, -1]),
        lambda x: aten.permute_copy(x, [2, 0, 1]),
        lambda x: aten.select_copy(x, 1, 2),
        lambda x: aten.slice_copy(x, 1, 1, 4),
        lambda x: aten.split_copy(x, 4, 2)[1],
        lambda x: aten.unfold_copy(x, 1, 3, 2),
        lambda x: aten.view_copy(x, [3, -1]),
    ],
)
def test_what_is_moved_stays_in_integers(move: Callable[[torch.Tensor], torch.Tensor]) -> None:
    class Moves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before = nn.Linear(12, 12)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return move(self.before(x))

    torch.manual_seed(3)
    inputs = [(torch.randn(1, 7, 12),) for _ in range(4)]
    model = quantize(Moves().eval(), inputs, CortexMQuantizer())
    (x,) = inputs[0]
    edge = lower_to_cortex_m(to_edge(torch.export.export(model, (x,))))
    calls = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    values = [n.meta["val"] for n in calls if isinstance(n.meta["val"], torch.Tensor)]
    assert sum(value.dtype == torch.float32 for value in values) == 1
    program = etx_runtime.load(edge.to_executorch(ExecutorchBackendConfig(target=None)).buffer)
    (last,) = [n for n in calls if n.target is ops.DEQUANTIZE]
    atol = 1.01 * float(last.args[1])
    expected = model(x).detach().numpy()
    np.testing.assert_allclose(np.asarray(program(x.numpy())), expected, rtol=0, atol=atol)


@pytest.mark.parametrize(("depth", "is_integer"), [(32767, True), (32768, False)])
def test_a_sum_that_is_too_deep_stays_float(depth: int, is_integer: bool) -> None:
    """Deeper sums are what the kernel refuses."""

    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(1, depth)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.a(x)
            return torch.bmm(y, y.transpose(1, 2))

    torch.manual_seed(3)
    (x,) = inputs = (torch.randn(1, 1, 1),)
    model = quantize(Product().eval(), [inputs], CortexMQuantizer())
    edge = lower_to_cortex_m(to_edge(torch.export.export(model, inputs)))
    targets = {n.target for n in edge.exported_program().graph.nodes}
    assert (ops.BATCH_MATMUL in targets) is is_integer
    program = etx_runtime.load(edge.to_executorch(ExecutorchBackendConfig(target=None)).buffer)
    expected = model(x).detach().numpy()
    np.testing.assert_allclose(np.asarray(program(x.numpy())), expected, rtol=0.02)
