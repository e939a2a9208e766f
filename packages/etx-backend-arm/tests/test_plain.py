# SPDX-License-Identifier: BSD-3-Clause
"""Integers that are numbers, next to TOSA's reference model and eager: no value differs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.ethos_u.backend import EthosUPartitioner
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from lowered import delegates, interpreted, lower
from test_forms import Whole
from torch import Tensor

SHAPES = [((2, 3, 4), (2, 3, 4)), ((3, 1, 2), (4, 1)), ((1, 4, 3, 2), (3, 1)), ((3,), (2, 1))]
TYPES = (torch.int8, torch.int16, torch.int32)
PAIRS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "add_alpha": lambda x, y: torch.add(x, y, alpha=-3),
    "sub": torch.sub,
    "sub_alpha": lambda x, y: torch.sub(x, y, alpha=2),
    "mul": torch.mul,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "clamp": lambda x, y: torch.clamp(x, min=y, max=y + 20),
    "div_floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "div_trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
    "left": lambda x, y: x << y,
    "right": lambda x, y: x >> y,
}
ONES: dict[str, Callable[[Tensor], Tensor]] = {
    "add": lambda x: x + 7,
    "sub": lambda x: x - 7,
    "rsub": lambda x: 7 - x,
    "mul": lambda x: x * -3,
    "clamp": lambda x: x.clamp(-5, 9),
    "clamp_low": lambda x: x.clamp(min=-5),
    "clamp_high": lambda x: x.clamp(max=9),
    "clamp_between": lambda x: x.clamp(torch.tensor(-5), torch.tensor(9)),
    "maximum_of_number": lambda x: torch.maximum(x, torch.tensor(3)),
    "relu": torch.relu,
    "abs": torch.abs,
    "neg": torch.neg,
    "left": lambda x: x << 3,
    "right": lambda x: x >> 2,
    "div_floor": lambda x: torch.div(x, -3, rounding_mode="floor"),
    "remainder": lambda x: x % 5,
    "remainder_negative": lambda x: x % -5,
    "amax": lambda x: x.amax(-1),
    "amin": lambda x: x.amin(0, keepdim=True),
    "sum": lambda x: x.sum(-1, dtype=torch.int32),
}


MOVES: dict[str, Callable[[Tensor], Tensor]] = {
    "view": lambda x: x.reshape(4, 6),
    "permute": lambda x: x.permute(2, 0, 1),
    "transpose": lambda x: x.transpose(1, 2),
    "cat": lambda x: torch.cat([x, x[:1]], 0),
    "stack": lambda x: torch.stack([x, x.flip(1)], 1),
    "slice": lambda x: x[:, 1:, ::3],
    "select": lambda x: x[:, -1],
    "expand": lambda x: x[:, :1].expand(2, 5, 4),
    "repeat": lambda x: x.repeat(1, 2, 1),
    "flip": lambda x: x.flip(0, 2),
    "squeeze": lambda x: x[:1].squeeze(0).unsqueeze(-1),
    "scatter": lambda x: torch.slice_scatter(x, x[:, :, :2], 2, 0, 4, 2),
    "scatter_last": lambda x: torch.slice_scatter(x, x[:, :1], 1, 1, None, 3),
    "scatter_side_by_side": lambda x: torch.slice_scatter(x, x[:, :2], 1, 1),
}


def drawn(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> Tensor:
    """Return numbers of the whole range of a byte, none of them zero."""
    generator = torch.Generator().manual_seed(seed)
    made = torch.randint(-128, 127, shape, generator=generator)
    return torch.where(made >= 0, made + 1, made).to(dtype)


def check(function: Callable[..., Tensor], profile: str, *inputs: Tensor) -> None:
    spec = TosaCompileSpec(f"TOSA-1.0+{profile}")
    program = lower(Whole(function).eval(), *inputs, partitioner=TOSAPartitioner(spec))
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    assert len(calls) == 2  # the call and its result
    (actual,), expected = interpreted(program, *inputs), function(*inputs)
    assert actual.dtype == expected.dtype
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("name", PAIRS)
def test_two_tensors(name: str) -> None:
    for i, (shapes, dtype) in enumerate(zip(SHAPES, (*TYPES, torch.int32), strict=True)):
        pair = [drawn(shape, dtype, 7 * i + j) for j, shape in enumerate(shapes)]
        check(PAIRS[name], "INT", *pair)


@pytest.mark.parametrize("name", ["add", "mul", "div_trunc"])
def test_two_types(name: str) -> None:
    check(PAIRS[name], "INT", drawn((3, 4), torch.int8, 0), drawn((4,), torch.int32, 1))


@pytest.mark.parametrize("name", ONES)
def test_one_tensor(name: str) -> None:
    for i, dtype in enumerate(TYPES):
        check(ONES[name], "INT", drawn((2, 3, 4), dtype, i))


@pytest.mark.parametrize("name", ["add", "add_alpha", "sub", "sub_alpha", "mul"])
def test_the_profile_of_floats_has_sums_of_int32(name: str) -> None:
    shapes = ((2, 1, 3), (1, 4, 3))
    check(PAIRS[name], "FP", *(drawn(s, torch.int32, i) for i, s in enumerate(shapes)))


@pytest.mark.parametrize("bits", [0, 3, 9, 31])
def test_the_profile_of_floats_shifts_to_the_left(bits: int) -> None:
    for i, dtype in enumerate(TYPES):
        check(lambda x: x << bits, "FP", drawn((2, 3, 4), dtype, i))


@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str) -> None:
    for i, dtype in enumerate(TYPES):
        check(MOVES[name], "INT", drawn((2, 3, 4), dtype, i))
    for profile in ("INT", "FP"):
        check(MOVES[name], profile, drawn((2, 3, 4), torch.int8, 3) > 0)


REFUSED: dict[str, tuple[Callable[..., Tensor], str, torch.dtype]] = {
    "add is not between int32 of one rank": (lambda x: x + x[0], "FP", torch.int32),
    "is torch.int32, the lowering takes torch.float32": (lambda x: x % 3, "FP", torch.int32),
    "shifts by 32, its lowering to TOSA FP": (lambda x: x << 32, "FP", torch.int32),
    "its lowering to TOSA FP by a number from 0 to 31": (lambda x: x << x, "FP", torch.int32),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_tosa_has_not_stays_outside(reason: str) -> None:
    function, profile, dtype = REFUSED[reason]
    partitioner = TOSAPartitioner(TosaCompileSpec(f"TOSA-1.0+{profile}"))
    program = lower(Whole(function).eval(), drawn((3, 4), dtype, 0), partitioner=partitioner)
    nodes = [n for n in program.graph.nodes if n.op == "call_function"]
    assert any(reason in (partitioner.why_not(node) or "") for node in nodes)


def test_numbers_stay_on_the_cpu_beside_an_npu() -> None:
    partitioner = EthosUPartitioner(EthosUCompileSpec("ethos-u55-128"))
    x = drawn((3, 4), torch.int32, 0)
    assert not delegates(lower(Whole(torch.add).eval(), x, x + 1, partitioner=partitioner))
    model = Whole(lambda x: x.transpose(0, 1)).eval()
    assert not delegates(lower(model, x, partitioner=partitioner))
