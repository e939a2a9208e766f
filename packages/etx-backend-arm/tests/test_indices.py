# SPDX-License-Identifier: BSD-3-Clause
"""GATHER, ARGMAX and CAST in both profiles, next to TOSA's reference model: no value differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import etx_runtime
import numpy as np
import pytest
import reference_model
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.ethos_u.backend import EthosUPartitioner
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import TOSAQuantizer
from etx_backend_arm.tosa import Op
from etx_exir import to_edge_transform_and_lower
from etx_exir.ir.equal_values import note_of
from etx_quant import quantize
from integers import integers
from lowered import delegates, interpreted, lower, operators
from test_forms import Whole
from torch import Tensor, nn

SHAPE = (2, 7, 20)


def only(program: Any) -> bytes:
    """Return the TOSA file of the one delegate; beside it are conversions of numbers alone."""
    (delegate,) = delegates(program)
    names = {n.target.__name__ for n in program.graph.nodes if n.op == "call_function"}
    assert names <= {"executorch_call_delegate", "getitem", "_to_dim_order_copy.default"}
    return delegate.processed_bytes


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_an_embedding_is_a_gather(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(11, 6)).eval()
    index = torch.tensor([[0, 10, 3], [3, 3, 7]], dtype=dtype)
    graph = only(lower(model, index, partitioner=TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))))
    assert operators(graph).count(Op.GATHER) == 1
    (actual,) = reference_model.run(graph, index.numpy().astype(np.int32))
    np.testing.assert_array_equal(actual, model(index).detach().numpy())


class Tokens(nn.Module):
    """A table, positions and a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(30, 8), nn.Embedding(5, 8)
        self.linear = nn.Linear(8, 4)

    def forward(self, index: Tensor) -> Tensor:
        return self.linear(self.words(index) + self.places(torch.arange(5)))


def test_a_quantized_table_is_one_of_integers() -> None:
    torch.manual_seed(0)
    inputs = [(torch.randint(0, 30, (2, 5)),) for _ in range(4)]
    model = quantize(Tokens().eval(), inputs, TOSAQuantizer())
    (index,) = inputs[0]
    spec = TosaCompileSpec("TOSA-1.0+INT")
    program = lower(model, index, partitioner=TOSAPartitioner(spec))
    (delegate,) = delegates(program)
    assert operators(delegate.processed_bytes).count(Op.GATHER) == 1
    (actual,) = reference_model.run(delegate.processed_bytes, index.numpy().astype(np.int32))
    scale = next(n.args[1] for n in program.graph.nodes if "dequantize" in str(n.target))
    expected = model(index).detach().numpy() / scale
    assert np.abs((actual - actual.mean()) - (expected - expected.mean())).max() <= 1.01


@pytest.mark.parametrize("profile", ["INT", "FP"])
@pytest.mark.parametrize("dim", [0, -1])
def test_the_number_of_the_largest(profile: str, dim: int) -> None:
    x: Tensor = integers(*SHAPE)
    if profile == "FP":
        x = torch.randn(SHAPE)
    model: nn.Module = Whole(lambda x: torch.argmax(x, dim, keepdim=dim == 0))
    if profile == "INT":
        decomposed = torch.ops.quantized_decomposed
        form = (0.5, 3, -128, 127, torch.int8)
        model = Whole(
            lambda x: torch.argmax(decomposed.dequantize_per_tensor(x, *form), dim, dim == 0)
        )
    spec = TosaCompileSpec(f"TOSA-1.0+{profile}")
    graph = only(lower(model.eval(), x, partitioner=TOSAPartitioner(spec)))
    (actual,) = reference_model.run(graph, x.numpy())
    np.testing.assert_array_equal(actual, model(x).numpy())


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_the_number_of_the_largest_byte(dim: int) -> None:
    x = integers(*SHAPE)
    model = Whole(lambda x: torch.argmax(x, dim)).eval()
    graph = only(lower(model, x, partitioner=TOSAPartitioner(TosaCompileSpec("TOSA-1.0+INT"))))
    (actual,) = reference_model.run(graph, x.numpy())
    np.testing.assert_array_equal(actual, model(x).numpy())


@pytest.mark.parametrize("profile", ["INT", "FP", "INT+FP"])
def test_numbers_of_what_is_not_taken_stay_outside(profile: str) -> None:
    model = Whole(lambda x: torch.argmax(x, 1).to(torch.int32)).eval()
    partitioner = TOSAPartitioner(TosaCompileSpec(f"TOSA-1.0+{profile}"))
    x = integers(3, 4, dtype=torch.int16)
    assert not delegates(lower(model, x, partitioner=partitioner))


TYPES = (torch.bool, torch.int8, torch.int16, torch.int32, torch.float32)
PAIRS = [(a, b) for a in TYPES for b in TYPES if a != b]


def numbers(dtype: torch.dtype) -> Tensor:
    if dtype == torch.float32:
        return torch.tensor([-2.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 100.7, -100.7])
    if dtype == torch.bool:
        return torch.tensor([True, False, True])
    return torch.tensor([0, 1, -1, 127, -128, 5], dtype=dtype) * (1 if dtype == torch.int8 else 201)


@pytest.mark.parametrize(("given", "made"), PAIRS, ids=str)
def test_conversions_are_those_of_eager(given: torch.dtype, made: torch.dtype) -> None:
    x = numbers(given)
    model = Whole(lambda x: x.to(made)).eval()
    profile = "FP" if torch.float32 in (given, made) else "INT"
    spec = TosaCompileSpec(f"TOSA-1.0+{profile}")
    (delegate,) = delegates(lower(model, x, partitioner=TOSAPartitioner(spec)))
    (actual,) = reference_model.run(delegate.processed_bytes, x.numpy())
    np.testing.assert_array_equal(actual, model(x).numpy())


def test_narrow_indices_are_not_said_to_equal_what_they_choose() -> None:
    """They come from the line of the operator that they are made for."""
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
    program = lower(Tokens().eval(), torch.randint(0, 30, (2, 5)), partitioner=partitioner)
    (made,) = (n for n in program.graph.nodes if "_to_dim_order_copy" in str(n.target))
    assert made.meta["val"].dtype == torch.int32
    assert note_of(made) is None
    assert "self.words(index)" in made.meta["stack_trace"]


def test_what_an_npu_lacks_stays_as_it_was() -> None:
    torch.manual_seed(0)
    inputs = [(torch.randint(0, 30, (2, 5)),) for _ in range(4)]
    model = quantize(Tokens().eval(), inputs, TOSAQuantizer())
    partitioner = EthosUPartitioner(EthosUCompileSpec("ethos-u55-128"))
    program = lower(model, *inputs[0], partitioner=partitioner)
    names = [n.target.__name__ for n in program.graph.nodes if n.op == "call_function"]
    assert names.count("embedding.default") == 1
    assert "_to_dim_order_copy.default" not in names
    assert len(delegates(program)) == 1


def test_delegates_between_conversions_run() -> None:
    """The conversions to int32 and back are kernels of their own."""
    x = torch.randn(SHAPE)
    model: Callable[..., Any] = Whole(lambda x: torch.argmax(x, -1) + 1)
    spec = TosaCompileSpec("TOSA-1.0+FP")
    program = torch.export.export(model.eval(), (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[TOSAPartitioner(spec)])
    targets = [str(n.target) for n in edge.exported_program().graph.nodes]
    assert targets.count("etx_dim_order._to_dim_order_copy.default") == 1
    assert etx_runtime is not None


PICKS: dict[str, tuple[Callable[..., Tensor], tuple[int, ...], tuple[tuple[int, ...], ...]]] = {
    "one": (lambda x, i: x[i], (5, 4, 3), ((6,),)),
    "of_rank_2": (lambda x, i: x[i], (5, 4, 3), ((2, 3),)),
    "all": (lambda x, i, j, k: x[i, j, k], (5, 4, 3), ((2, 1), (1, 3), (3,))),
    "two": (lambda x, i, j: x[i, j], (5, 4, 3), ((4,), (4,))),
    "behind": (lambda x, i, j: x[:, i, j], (5, 4, 3), ((2, 3), (3,))),
    "last": (lambda x, i: x[..., i], (2, 5, 4, 3), ((4,),)),
    "apart": (lambda x, i, j: x[i, :, j], (5, 4, 3), ((2, 3), (1,))),
    "apart_behind": (lambda x, i, j: x[:, i, :, j], (2, 5, 4, 3), ((2,), (2,))),
    "with_a_constant": (lambda x, i: x[torch.tensor([[1], [-1]]), i], (5, 4, 3), ((3,),)),
    "constants": (lambda x: x[torch.tensor([0, -1]), :, torch.tensor([2, 0])], (5, 4, 3), ()),
}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("profile", ["INT", "FP"])
@pytest.mark.parametrize("name", PICKS)
def test_picks_by_several_indices(name: str, profile: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    function, shape, sizes = PICKS[name]
    indices = [torch.randint(0, 3, size, dtype=dtype) for size in sizes]
    spec = TosaCompileSpec(f"TOSA-1.0+{profile}")
    x = torch.randn(shape)
    model: nn.Module = Whole(function).eval()
    if profile == "INT":
        model = quantize(model, [(x, *indices)], TOSAQuantizer(spec))
    program = lower(model, x, *indices, partitioner=TOSAPartitioner(spec))
    assert len(delegates(program)) == 1
    assert "index.Tensor" not in str(program.graph)
    (actual,) = interpreted(program, x, *indices)
    assert torch.equal(actual, model(x, *indices))


def test_integers_are_picked_as_they_are() -> None:
    x, i = torch.randint(-9, 9, (5, 4), dtype=torch.int32), torch.tensor([0, 3, 3]).int()
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+INT"))
    program = lower(Whole(lambda x, i: x[i, i]).eval(), x[:, :4], i, partitioner=partitioner)
    assert len(delegates(program)) == 1
    (actual,) = interpreted(program, x, i)
    assert torch.equal(actual, x[i.long(), i.long()])


def test_places_that_float32_does_not_tell_apart_stay_outside() -> None:
    x, i = torch.empty(2**12, 2**12 + 1), torch.tensor([0, 3]).int()
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
    program = lower(Whole(lambda x, i: x[i, i]).eval(), x, i, partitioner=partitioner)
    (node,) = [n for n in program.graph.nodes if "index.Tensor" in str(n.target)]
    assert "at most 16777216 are told apart" in (partitioner.why_not(node) or "")
