# SPDX-License-Identifier: BSD-3-Clause
"""Values in places, and elements by their places, next to TOSA's reference model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import TOSAQuantizer
from etx_backend_arm.tosa import Op
from etx_quant import quantize
from lowered import delegates, interpreted, lower, operators
from test_forms import Whole
from torch import Tensor, nn

Case = tuple[Callable[..., Tensor], tuple[int, ...], tuple[tuple[int, ...], ...], tuple[int, ...]]
put = torch.ops.aten.index_put.default
PUTS: dict[str, Case] = {
    "one": (lambda x, v, i: put(x, [i], v), (5, 4, 3), ((3,),), (3, 4, 3)),
    "of_rank_2": (lambda x, v, i: put(x, [i], v), (6, 4), ((2, 2),), (2, 2, 4)),
    "two": (lambda x, v, i, j: put(x, [i, j], v), (5, 6, 3), ((4,), (4,)), (4, 3)),
    "all": (lambda x, v, i, j: put(x, [i, j], v), (5, 6), ((3, 1), (2,)), (3, 2)),
    "last": (lambda x, v, i: put(x, [None, None, i], v), (2, 3, 5), ((4,),), (2, 3, 4)),
    "behind": (lambda x, v, i: put(x, [None, i], v), (2, 5, 3), ((2,),), (2, 3)),
    "apart": (lambda x, v, i, j: put(x, [i, None, j], v), (5, 4, 6), ((3,), (3,)), (3, 4)),
    "of_one_row": (lambda x, v, i: put(x, [None, i], v), (2, 5, 3), ((1,),), (3,)),
    "each_the_same": (lambda x, v, i: put(x, [i], v), (5, 4), ((3,),), (4,)),
    "a_number": (lambda x, v, i: put(x, [None, i], v), (3, 4, 2), ((2, 2),), ()),
    "added": (lambda x, v, i: put(x, [i], v, True), (4, 3), ((6,),), (6, 3)),
    "added_behind": (lambda x, v, i: put(x, [None, i], v, True), (2, 4, 3), ((5,),), (1, 5, 3)),
    "copied": (lambda x, v, i: x.index_copy(1, i, v), (2, 5, 3), ((4,),), (2, 4, 3)),
}
"""What puts values, the tensor's shape, the indices' and the value's."""


def distinct(name: str, sizes: tuple[tuple[int, ...], ...], dtype: torch.dtype) -> list[Tensor]:
    """Return numbers of rows, each once where values differ."""
    many = [torch.randperm(4)[: max(size[0], size[-1])] if size else None for size in sizes]
    if name.startswith(("added", "each", "a_number")):
        return [torch.randint(0, 3, size).to(dtype) for size in sizes]
    if name == "of_rank_2":
        return [torch.randperm(5)[:4].reshape(2, 2).to(dtype)]
    return [
        each[: torch.Size(size).numel()].reshape(size).to(dtype)
        for each, size in zip(many, sizes, strict=True)
        if each is not None
    ]


def check(
    model: nn.Module, profile: str, *inputs: Tensor, count: int = 1, steps: float = 0
) -> list[Op]:
    """Compare a program, all of it delegated, with eager or the quantized model."""
    spec = TosaCompileSpec(f"TOSA-1.0+{profile}")
    if "INT" in profile and inputs[0].is_floating_point():
        model = quantize(model, [inputs], TOSAQuantizer(spec))
    program = lower(model, *inputs, partitioner=TOSAPartitioner(spec))
    assert len(delegates(program)) == count
    left = {n.target.__name__ for n in program.graph.nodes if n.op == "call_function"}
    assert not [name for name in left if name.startswith(("index", "gather", "scatter"))]
    (actual,), expected = interpreted(program, *inputs), model(*inputs).detach()
    assert float((actual.double() - expected.double()).abs().max()) <= steps
    return operators(delegates(program)[0].processed_bytes)


PLACED = [(name, dtype) for name in PUTS for dtype in (torch.int32, torch.int64)]
PLACED.remove(("copied", torch.int32))  # Eager takes int64.


@pytest.mark.parametrize("profile", ["INT", "FP", "FP+bf16"])
@pytest.mark.parametrize(("name", "dtype"), PLACED)
def test_values_are_put(name: str, profile: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    function, shape, sizes, of_value = PUTS[name]
    x, value = torch.randn(shape), torch.randn(of_value)
    steps = 1e-6
    if profile.endswith("bf16"):
        x, value, steps = x.bfloat16(), value.bfloat16(), 2**-6
    elif profile == "INT" and name.startswith("added"):
        steps = 0.06
    indices = distinct(name, sizes, dtype)
    found = check(Whole(function).eval(), profile, x, value, *indices, steps=steps)
    is_one = name in ("of_one_row", "each_the_same", "a_number", "added", "added_behind")
    assert Op.SCATTER not in found
    assert (Op.GATHER in found) != is_one


SEVERAL = ["one", "of_rank_2", "two", "all", "last", "behind", "apart"]


@pytest.mark.parametrize("profile", ["INT", "FP", "FP+bf16"])
@pytest.mark.parametrize("name", SEVERAL)
def test_the_last_value_of_a_place_stays(name: str, profile: str) -> None:
    torch.manual_seed(0)
    function, shape, sizes, of_value = PUTS[name]
    x, value = torch.randn(shape), torch.randn(of_value)
    if profile.endswith("bf16"):
        x, value = x.bfloat16(), value.bfloat16()
    indices = [torch.randint(-2, 2, size) for size in sizes]
    check(Whole(function).eval(), profile, x, value, *indices, steps=1e-6)


@pytest.mark.parametrize("profile", ["INT", "FP"])
def test_constant_indices_that_repeat(profile: str) -> None:
    torch.manual_seed(0)
    model = Whole(lambda x, v: put(x, [torch.tensor([1, 3, 1])], v)).eval()
    found = check(model, profile, torch.randn(5, 4), torch.randn(3, 4), steps=1e-6)
    assert Op.SCATTER not in found


@pytest.mark.parametrize("profile", ["INT", "FP"])
@pytest.mark.parametrize("indices", [[4, 1, 3], [-1]])
def test_indices_that_differ_are_scattered(indices: list[int], profile: str) -> None:
    torch.manual_seed(0)
    model = Whole(lambda x, v: put(x, [torch.tensor(indices)], v)).eval()
    inputs = (torch.randn(5, 4), torch.randn(len(indices), 4))
    found = check(model, profile, *inputs, steps=1e-6)
    assert (Op.SCATTER in found) == (len(indices) > 1)


@pytest.mark.parametrize("profile", ["INT", "FP"])
@pytest.mark.parametrize("name", ["one", "two", "last", "apart", "each_the_same", "added"])
def test_indices_below_zero_count_from_the_end(name: str, profile: str) -> None:
    torch.manual_seed(0)
    function, shape, sizes, of_value = PUTS[name]
    indices = [each - 2 for each in distinct(name, sizes, torch.int64)]
    inputs = (torch.randn(shape), torch.randn(of_value), *indices)
    check(Whole(function).eval(), profile, *inputs, steps=0.06)
    check(Whole(lambda x, i: x[i, :, i]).eval(), profile, torch.randn(3, 2, 4), indices[0] % 3 - 2)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32])
@pytest.mark.parametrize("name", ["one", "apart", "each_the_same", "added"])
def test_integers_are_put_as_they_are(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    function, shape, sizes, of_value = PUTS[name]
    x, value = (torch.randint(-99, 99, size).to(dtype) for size in (shape, of_value))
    indices = distinct(name, sizes, torch.int64)
    is_taken = name != "added" or dtype == torch.int32
    program = lower(
        Whole(function).eval(),
        x,
        value,
        *indices,
        partitioner=TOSAPartitioner(TosaCompileSpec("TOSA-1.0+INT")),
    )
    assert len(delegates(program)) == is_taken
    (actual,) = interpreted(program, x, value, *indices)
    assert torch.equal(actual, function(x, value, *indices))


MASKS: dict[str, Case] = {
    "whole": (lambda x, v, m: put(x, [m], v), (2, 3), ((2, 3),), ()),
    "in_front": (lambda x, v, m: put(x, [m], v), (2, 3, 4), ((2, 3),), (1,)),
    "behind": (lambda x, v, m: put(x, [None, m], v), (2, 3, 4), ((3,),), (2, 1, 4)),
    "last": (lambda x, v, m: put(x, [None, m], v), (2, 3, 4), ((3, 4),), (2, 1)),
}


@pytest.mark.parametrize("profile", ["INT", "FP"])
@pytest.mark.parametrize("name", MASKS)
def test_masks_choose(name: str, profile: str) -> None:
    torch.manual_seed(0)
    function, shape, (of_mask,), of_value = MASKS[name]
    x, value, mask = torch.randn(shape), torch.randn(of_value), torch.rand(of_mask) > 0.5
    assert Op.SELECT in check(Whole(function).eval(), profile, x, value, mask, steps=1e-6)


X = torch.randn(5, 4)
REFUSED = {
    "several values where indices may repeat": (
        lambda x, v: put(x.repeat(400, 1), [v[:, 0].int()], v),
        torch.randn(800, 4),
    ),
    "as many values as a mask": (lambda x, v: put(x, [x[:, 0] > 9], v), torch.randn(2, 4)),
    "several masks": (lambda x, v: put(x, [x[:, 0] > 9, x[0] > 9], v), torch.randn(1)),
    "pairs, at most 262144 are": (
        lambda x, v: put(x.repeat(400, 1), [torch.arange(800, dtype=torch.int32)], v, True),
        torch.randn(800, 4),
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_scatter_cannot_stays_outside(reason: str) -> None:
    function, value = REFUSED[reason]
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
    program = lower(Whole(function).eval(), X, value, partitioner=partitioner)
    (node,) = [n for n in program.graph.nodes if "index_put" in str(n.target)]
    assert reason in (partitioner.why_not(node) or "")


GATHERS = {"first": (0, (2, 3, 4)), "middle": (1, (5, 2, 3)), "last": (-1, (4, 3, 7))}


@pytest.mark.parametrize("profile", ["INT", "FP", "FP+bf16"])
@pytest.mark.parametrize("name", GATHERS)
def test_elements_are_picked_one_by_one(name: str, profile: str) -> None:
    torch.manual_seed(0)
    dim, of_index = GATHERS[name]
    x, index = torch.randn(5, 3, 4), torch.randint(0, 3, of_index)
    x = x.bfloat16() if profile.endswith("bf16") else x
    found = check(Whole(lambda x, i: torch.gather(x, dim, i)).eval(), profile, x, index)
    assert found.count(Op.GATHER) == 1


PICKS = {
    "gather": lambda x, i: torch.gather(x, 1, i),
    "index": lambda x, i: x[i],
    "select": lambda x, i: torch.index_select(x, 1, i[0]),
}


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.int16, torch.int32])
@pytest.mark.parametrize("name", PICKS)
def test_integers_and_truths_are_picked(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, index = torch.randint(0, 2, (3, 4)).to(dtype), torch.randint(0, 3, (2, 3))
    check(Whole(PICKS[name]).eval(), "INT", x, index)


class Table(nn.Module):
    """Rows of a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(6, 3))

    def forward(self, i: Tensor) -> Tensor:
        return self.table[i] * 1.0


def test_rows_of_a_constant() -> None:
    index = torch.tensor([5, 0, 2])
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
    model = Table().eval()
    program = lower(model, index, partitioner=partitioner)
    assert len(delegates(program)) == 1
    (actual,) = interpreted(program, index)
    assert torch.equal(actual, model(index))
