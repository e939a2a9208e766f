# SPDX-License-Identifier: BSD-3-Clause
"""Print what the conformance run's judges say of values whose verdict is known, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import Tensor, tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks" / "conformance"))

from judged import are_ties, is_near, is_rounded

EXACT = tensor([1 / 3, -2 / 3, float("nan"), float("inf"), 1e-9], dtype=torch.float64)
SUM = tensor([1e-3], dtype=torch.float64)
X = tensor([[3.0, 1.0, 3.0], [2.0, 2.0, 5.0]])


def moved(x: Tensor, steps: int) -> Tensor:
    """Return `x` with its first number some steps of its dtype away."""
    y = x.clone()
    for _ in range(steps):
        y[0] = torch.nextafter(y[0], tensor(9.0, dtype=x.dtype))
    return y


def rounded() -> dict[str, bool]:
    half, single = EXACT.half(), EXACT.float()
    return {
        "rounded float16": is_rounded([half], [EXACT]),
        "rounded bfloat16": is_rounded([EXACT.bfloat16()], [EXACT]),
        "not: three steps away": is_rounded([moved(single, 3)], [EXACT]),
        "not: a nan that is none": is_rounded([single.nan_to_num(0)], [EXACT]),
        "not: through float16": is_rounded([half.float()], [EXACT]),
        "places are equal": is_rounded([half, tensor([1, 2])], [EXACT, tensor([1, 2])]),
        "not: places differ": is_rounded([half, tensor([1, 2])], [EXACT, tensor([2, 1])]),
        "not: another number beside": is_rounded([half, 3], [EXACT, 4]),
    }


def near() -> dict[str, bool]:
    eager = (SUM + 1e-4).float()
    return {
        "as far on the other side": is_near([(SUM - 1e-4).float()], [eager], [SUM]),
        "not: thrice as far": is_near([(SUM + 3e-4).float()], [eager], [SUM]),
        "not: nan": is_near([SUM.float() * float("nan")], [eager], [SUM]),
        "not: eager is exact": is_near([eager], [SUM.half().float()], [SUM.half().double()]),
        "nothing": is_near([SUM[:0].float()], [SUM[:0].float()], [SUM[:0]]),
        "not: places differ": is_near([tensor([1])], [tensor([2])], [tensor([2])]),
    }


def ties() -> dict[str, bool]:
    first, last = tensor([0, 0]), tensor([2, 1])
    values = tensor([3.0, 2.0])
    return {
        "of equal elements": are_ties(X, [tensor([0, 0])], [tensor([2, 0])]),
        "beside equal values": are_ties(X, [values, first], [values, tensor([2, 0])]),
        "along the other axis": are_ties(X.T.contiguous(), [first], [tensor([2, 1])]),
        "not: of others": are_ties(X, [first], [tensor([1, 0])]),
        "not: values differ": are_ties(X, [values, first], [values + 1, tensor([2, 0])]),
        "not: of another shape": are_ties(X, [tensor([0, 0, 0])], [tensor([0])]),
        "not: a place twice": are_ties(
            X, [tensor([[0, 0, 1], [0, 1, 2]])], [tensor([[0, 2, 1], [0, 1, 2]])]
        ),
        "an order": are_ties(X, [tensor([[2, 0, 1], [1, 0, 2]])], [tensor([[0, 2, 1], [0, 1, 2]])]),
        "not: of a sequence": are_ties([X], [first], [last]),
    }


if __name__ == "__main__":
    print(json.dumps({"rounded": rounded(), "near": near(), "ties": ties()}))
