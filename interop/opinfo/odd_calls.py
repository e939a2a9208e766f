# SPDX-License-Identifier: BSD-3-Clause
"""Calls that ExecuTorch's kernels compute otherwise than eager, or not, compiled for its target.

usage: odd_calls.py FILE.samples [--after N]

Lines and pickles are write.py's.
"""

from __future__ import annotations

import json
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.nn import functional as F
from write import Calls, compiled

INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
HALVES = (torch.float16, torch.bfloat16)
SHIFTS = (torch.bitwise_left_shift, torch.bitwise_right_shift)
CL = torch.channels_last
Made = dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]]


class Odd:
    """A call, as write.py has samples."""

    def __init__(self, call: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> None:
        self.call, self.inputs = call, inputs

    def expected(self) -> list[torch.Tensor]:
        """Return what eager gives."""
        result = self.call(*self.inputs)
        found = result if isinstance(result, tuple) else (result,)
        return [x.clone() for x in found]

    def exported(self) -> ExportedProgram:
        """Return the call as a program."""
        return torch.export.export(Calls(self.call), self.inputs)


def integers(dtype: torch.dtype, bound: int = 20, zero: bool = True) -> torch.Tensor:
    """Return numbers of both signs, where the dtype has them."""
    info = torch.iinfo(dtype)
    low, high = max(info.min, -bound), min(info.max, bound)
    made = torch.randint(low + (low == info.min), high, (4, 30), dtype=dtype)
    return made if zero else torch.where((made == 0) | (made == -1), 3, made)


def of_integers() -> Made:
    """Return calls of each dtype."""
    made: Made = {}
    for dtype in INTS:
        name, big = str(dtype).removeprefix("torch."), torch.iinfo(dtype).max
        pair = (integers(dtype), integers(dtype, zero=False))
        large = (integers(dtype, big), integers(dtype, zero=False))
        for other, inputs in {"": pair, " of large": large}.items():
            made |= {
                f"remainder {name}{other}": (torch.remainder, inputs),
                f"fmod {name}{other}": (torch.fmod, inputs),
                f"floor_divide {name}{other}": (torch.floor_divide, inputs),
                f"remainder by 7 {name}{other}": (lambda x: x % 7, inputs[:1]),
                f"remainder by -7 {name}{other}": (lambda x: x % -7, inputs[:1]),
                f"fmod by 7 {name}{other}": (lambda x: x.fmod(7), inputs[:1]),
                f"fmod by -3 {name}{other}": (lambda x: x.fmod(-3), inputs[:1]),
                f"trunc {name}{other}": (lambda x: x.div(7, rounding_mode="trunc"), inputs[:1]),
                f"floor {name}{other}": (lambda x: torch.ops.aten.floor(x), inputs[:1]),
                f"sum {name}{other}": (lambda x: (x.sum(), x.sum(1), x.sum(0, True)), inputs[:1]),
                f"cumsum {name}{other}": (lambda x: x.cumsum(1), inputs[:1]),
                f"prod {name}{other}": (lambda x: x.prod(1), inputs[:1]),
            }
        made[f"shifts {name}"] = (
            lambda x, n: (
                *(shift(x, n) for shift in SHIFTS),
                *(shift(x, n) for shift in SHIFTS for n in (3, 70)),
            ),
            (integers(dtype), torch.randint(-3, 70, (4, 30)).to(dtype)),
        )
        for power in (0, 1, 3, 7, 40):
            made[f"power {power} {name}"] = (
                lambda x, n=power: x**n,
                (integers(dtype, 9),),
            )
        made[f"power of {name}"] = (lambda x, n: x**n, (integers(dtype, 5), integers(dtype, 9)))
        made[f"2 to {name}"] = (lambda n: 2**n, (integers(dtype, 9),))
    made["a bool's remainder"] = (torch.remainder, (pair[0] > 3, integers(torch.int64, zero=False)))
    made["clamp uint8"] = (lambda x: x.clamp(min=-3), (pair[0],))
    made["sum of a mask"] = (lambda x: (x > 3).long().sum(1), (integers(torch.int64),))
    made["power of bool"] = (lambda x: (x > 3) ** 3, (integers(torch.int64),))
    return made


def of_halves() -> Made:
    """Return calls that add many numbers of half precision."""
    made: Made = {}
    norm = torch.nn.LayerNorm(300)
    for dtype in HALVES:
        name = str(dtype).removeprefix("torch.")
        x = torch.randn(3, 300).to(dtype) + 3
        image, kernel = torch.randn(1, 64, 9, 9).to(dtype), torch.randn(6, 64, 3, 3).to(dtype)
        made |= {
            f"cumsum {name}": (lambda x: x.cumsum(1), (x,)),
            f"layer_norm {name}": (
                lambda x, w, b: F.layer_norm(x, (300,), w, b),
                (x, norm.weight.detach().to(dtype), norm.bias.detach().to(dtype)),
            ),
            f"var {name}": (lambda x: (x.var(1), *torch.var_mean(x, 1)), (x,)),
            f"conv {name}": (F.conv2d, (image, kernel)),
            f"addmm {name}": (torch.addmm, (x[:, :3].clone(), x, x.t().contiguous())),
            f"avg_pool {name}": (lambda x: F.avg_pool2d(x, 9), (image,)),
            f"scatter_add {name}": (
                lambda x, i: torch.zeros_like(x).scatter_add(1, i, x),
                (x, torch.randint(0, 3, (3, 300))),
            ),
            f"trunc {name}": (lambda x, y: x.div(y, rounding_mode="trunc"), (x * 9, x.flip(1) - 2)),
            f"compare {name}": (lambda x: (x == 0.1, x <= 2.7, x > 1e6), (x - x + 0.1,)),
            f"int64 and {name}": (lambda x, i: (x.fmod(i), x.remainder(i)), (x, x.long() << 30)),
        }
    return made


def of_floats() -> Made:
    """Return calls with zeros, infinities and dtypes that differ."""
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 5.5, -5.5, torch.inf, torch.nan])
    at = torch.tensor([6, -1])
    return {
        "floor_divide by zeros": (torch.floor_divide, (x, x.new_zeros(8))),
        "floor_divide": (torch.floor_divide, (x[:6], x.flip(0)[:6])),
        "div floor by zeros": (lambda x, y: x.div(y, rounding_mode="floor"), (x, -x.new_zeros(8))),
        "div floor by 0": (lambda x: x.div(0, rounding_mode="floor"), (x,)),
        "cat": (lambda x, i: torch.cat([i, x]), (x.double(), torch.tensor([-5, 1 << 40]))),
        "stack": (lambda x, i: torch.stack([i, x]), (x.double()[:2], torch.tensor([-5, 1 << 40]))),
        "addmm of nan": (
            lambda x, y, z: torch.addmm(x, y, z, beta=0, alpha=2),
            (x[7:].clone(), torch.randn(2, 3), torch.randn(3, 4)),
        ),
        "arange of fractions": (lambda x: x + torch.arange(0, 12, 1.5).long(), (x,)),
        "put at negatives": (lambda x, i: (x * 2).index_put((i,), x[:2]), (x, at)),
        "put a number": (lambda x, i, v: (x * 2).index_put((i,), v), (x, at, torch.ones(()))),
        "put one": (lambda x, i, v: (x * 2).index_put((i,), v), (x, at, torch.ones(1))),
        "put by mask": (lambda x, v: (x * 2).index_put((x > 0,), v), (x, torch.ones(()))),
        "put at a table": (lambda x, i: (x * 2).index_put((i.view(2, 1),), x[:1]), (x, at)),
        "put rows": (lambda x, i: (x * 2).index_put((i,), x[0]), (torch.randn(8, 3), at)),
        "put columns": (
            lambda x, i: torch.ops.aten.index_put(x * 2, (None, i), x[:, :2]),
            (torch.randn(3, 8), at),
        ),
        "put pairs": (lambda x, i: (x * 2).index_put((i, i), x[0, :2]), (torch.randn(8, 8), at)),
        "put and add": (lambda x, i: (x * 2).index_put((i,), x[:2], accumulate=True), (x, at)),
        "index_copy of a number": (
            lambda x, i, v: (x * 2).index_copy(0, i, v),
            (torch.ones(()), at[:1] * 0, torch.zeros(())),
        ),
        "log_softmax of nothing": (lambda x: x[:0].log_softmax(0), (x,)),
        "copy that need not wait": (lambda x: x.to(torch.float64, non_blocking=True), (x,)),
        "layer_norm float64": (lambda x: F.layer_norm(x, (8,)), (torch.randn(3, 8).double(),)),
    }


def of_orders() -> Made:
    """Return calls with tensors in channels-last order."""
    x = torch.randn(2, 4, 6, 6)
    last, kernel, four = x.contiguous(memory_format=CL), torch.randn(5, 4, 3, 3), torch.randn(4)
    alone: dict[str, Callable[[torch.Tensor], Any]] = {
        "relu": torch.relu,
        "softmax": lambda x: x.softmax(1),
        "sum": lambda x: (x.sum((2, 3)), x.mean(1), x.amax(1), x.argmax(1), x.cumsum(1)),
        "views": lambda x: (x.flatten(1), x.permute(0, 2, 3, 1), x[:, 1:3], x.unsqueeze(0)),
        "pools": lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 1)),
        "pads": lambda x: (F.pad(x, (1, 1)), F.pad(x, (1, 1, 1, 1), "replicate"), x.flip(1)),
        "cat": lambda x: (torch.cat([x, x], 1), torch.stack([x, x]), torch.cat([x, x * 2], 3)),
        "norms": lambda x: (F.layer_norm(x, (6,)), F.group_norm(x, 2)),
        "glu": lambda x: (F.glu(x, 1), F.pixel_unshuffle(x, 2), x.repeat(1, 2, 1, 1)),
        "resize": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        "topk": lambda x: x.topk(2, 1),
        "add numbers": lambda x: x + 2 * torch.ones(()),
        "tril": lambda x: (x.tril(), x.gather(1, torch.zeros(2, 4, 6, 6, dtype=torch.int64))),
    }
    both: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
        "add": (lambda x, y: (x + y, y * x), (last, x)),
        "where": (lambda x, y: torch.where(x > 0, x, y), (last, x)),
        "logical_and": (torch.logical_and, (last, x)),
        "add bias": (lambda x, b: x + b.view(4, 1, 1), (last, four)),
        "add row": (lambda x, b: x * b, (last, torch.randn(6))),
        "add scalar": (lambda x, b: x - b, (last, torch.randn(()))),
        "conv": (F.conv2d, (last, kernel)),
        "conv of last": (F.conv2d, (last, kernel.contiguous(memory_format=CL))),
        "conv into last": (F.conv2d, (x, kernel.contiguous(memory_format=CL))),
        "batch_norm": (lambda x, m: F.batch_norm(x, m, m.abs() + 1), (last, four)),
        "to last": (lambda x: x.to(memory_format=CL) + x, (x,)),
        "from last": (lambda x: x.contiguous() + 1, (last,)),
        "transposed": (lambda x: x.t() + x, (torch.randn(3, 3),)),
        "of transposed": (lambda x: x + 1, (torch.randn(3, 4).t(),)),
    }
    return {f"last {name}": (call, (last,)) for name, call in alone.items()} | {
        f"orders {name}": row for name, row in both.items()
    }


def main() -> None:
    """Write the calls after the given one."""
    torch.manual_seed(0)
    path, after = Path(sys.argv[1]), int(sys.argv[3]) if sys.argv[2:] else -1
    calls = of_integers() | of_halves() | of_floats() | of_orders()
    with path.open("ab") as stream:
        for i, (name, (call, inputs)) in enumerate(calls.items()):
            if i <= after:
                continue
            print(json.dumps([i, "begun", {"op": name}]), flush=True)
            row = compiled(Odd(call, inputs), unset=False)
            stream.write(pickle.dumps((i, row)))
            stream.flush()
            print(json.dumps([i, row["state"], row.get("why", "")]), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
