# SPDX-License-Identifier: BSD-3-Clause
"""Graphs with fewer operators return what they returned: drawn programs, and forms of each rule."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod
from unittest.mock import patch

import etx_backend_arm.lowering
import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.tosa import Op
from lowered import delegates, interpreted, lower, operators
from test_forms import Whole
from torch import Tensor, nn

FLOATS = TosaCompileSpec("TOSA-1.0+FP")
SHAPES = [(1, 4, 6), (4, 6), (24,), (2, 12), (2, 1, 3, 4), (4, 1, 6), (1, 1, 24), (3, 8), (6, 4)]


class Drawn(nn.Module):
    """Shapes, orders and arithmetic, drawn by a seed; several values are returned."""

    def __init__(self, seed: int, steps: int = 9) -> None:
        super().__init__()
        self.seed, self.steps = seed, steps

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return the last values."""
        draw = random.Random(self.seed)
        values = [x]
        for _ in range(self.steps):
            value = values[-1 - (draw.random() < 0.2 and len(values) > 1)]
            values.append(self.step(draw, value, values))
        return [values[-1], *draw.sample(values[1:-1], 2)]

    def step(self, draw: random.Random, value: Tensor, values: list[Tensor]) -> Tensor:
        """Return a new value."""
        kind = draw.choice(("view", "view", "permute", "one", "number", "two", "row", "reduce"))
        if kind == "view":
            return value.reshape(
                draw.choice([s for s in SHAPES if prod(s) == value.numel()] or [-1])
            )
        if kind == "permute":
            return value.permute(draw.sample(range(value.dim()), value.dim()))
        if kind == "number":
            return draw.choice((value * 0.5, value + 0.25, -value, value.abs() - 1))
        if kind == "row":
            return value * torch.linspace(0.5, 1.5, value.shape[-1])
        if kind == "reduce":
            return value - value.amax(-1, keepdim=True)
        if kind == "two":
            return value + draw.choice([v for v in values if v.shape == value.shape])
        return torch.tanh(value)


def both(model: nn.Module, *inputs: Tensor) -> tuple[list[Op], list[Op]]:
    """Return operators with and without the rules; results are eager's."""
    found = []
    for rules in (True, False):
        change = (lambda graph: None) if not rules else etx_backend_arm.lowering.simplify
        with patch.object(etx_backend_arm.lowering, "simplify", change):
            program = lower(model, *inputs, partitioner=TOSAPartitioner(FLOATS))
        found.append([op for d in delegates(program) for op in operators(d.processed_bytes)])
        expected = model(*inputs)
        listed = expected if isinstance(expected, (list, tuple)) else [expected]
        for actual, each in zip(interpreted(program, *inputs), listed, strict=True):
            torch.testing.assert_close(actual, each, rtol=1e-5, atol=1e-6)
    return found[0], found[1]


@pytest.mark.parametrize("seed", range(6))
def test_drawn_programs_compute_the_same(seed: int) -> None:
    torch.manual_seed(seed)
    few, many = both(Drawn(seed).eval(), torch.randn(1, 4, 6))
    assert len(few) <= len(many)


FORMS: dict[str, tuple[Callable[..., Tensor], tuple[int, ...], list[Op]]] = {
    "reshapes_meet": (
        lambda x: torch.tanh(x.reshape(2, 12)).reshape(1, 4, 6) * 2,
        (1, 4, 6),
        [Op.MUL, Op.TANH],
    ),
    "transpositions_meet": (
        lambda x: x.transpose(1, 2).transpose(0, 1).transpose(0, 2),
        (2, 3, 4),
        [Op.TRANSPOSE],
    ),
    "ones_are_moved_for_nothing": (
        lambda x: x.reshape(1, 4, 6, 1).permute(0, 3, 2, 1).reshape(6, 4),
        (4, 6),
        [Op.TRANSPOSE],
    ),
    "a_softmax_keeps_its_shape": (
        lambda x: torch.bmm(torch.softmax(torch.bmm(x, x)[None], -1)[0], x),
        (2, 5, 5),
        [
            Op.EXP,
            Op.MATMUL,
            Op.MATMUL,
            Op.MUL,
            Op.RECIPROCAL,
            Op.REDUCE_MAX,
            Op.REDUCE_SUM,
            Op.SUB,
        ],
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_have_no_operator_too_many(name: str) -> None:
    function, shape, expected = FORMS[name]
    torch.manual_seed(0)
    few, _ = both(Whole(function).eval(), torch.randn(shape))
    assert sorted(few, key=lambda op: op.name) == expected
