# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent layers, as support/recurrent_reference.py registers them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
from case import BF16, F16, F32, Case
from integer_reference import pack, pack_groups, pack_int4
from recurrent_reference import define_operators
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

DEFINED = define_operators()
SIZES = (  # steps, batch, inputs, cells, states of an LSTM
    (1, 1, 3, 5, 5),
    (7, 1, 16, 24, 24),
    (5, 3, 9, 17, 6),
    (4, 12, 33, 40, 40),
    (300, 1, 4, 8, 3),
    (270, 2, 5, 6, 6),
    (2, 300, 2, 3, 3),
    (3, 2, 1, 1, 1),
    (3, 0, 4, 5, 5),
    (3, 2, 0, 5, 5),
)
GROUPED = (5, 2, 48, 32, 16)  # the input of each, which groups of 16 divide
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def drawn(name: str, info: Any, device: Any, dtype: Any, requires_grad: bool, **k: Any) -> Any:
    torch.manual_seed(0)
    for size, (i, flags) in product(SIZES, enumerate(product((False, True), repeat=2))):
        yield from samples(name, size, flags, dtype, has_bias=i != 1)


def samples(
    name: str, size: tuple[int, ...], flags: tuple[bool, bool], dtype: Any, has_bias: bool
) -> Iterator[SampleInput]:
    steps, batch, inputs, cells, states = size
    rows, depth = GATES[name] * cells, states if name == "lstm" else cells
    shape = (batch, steps, inputs) if flags[0] else (steps, batch, inputs)
    scale = max(cells, inputs) ** -0.5
    weights = [torch.randn(rows, n) * scale for n in (inputs, depth)]
    biases = [torch.randn(rows) if has_bias else None for _ in range(2)]
    given = [torch.randn(shape), torch.randn(batch, depth)]
    if name == "lstm":
        given.append(torch.randn(batch, cells))
    projection = torch.randn(states, cells) * scale if states != cells else None
    tensors = [*given, *weights, *biases, *([projection] if name == "lstm" else ())]
    first, *rest = (None if t is None else t.to(dtype) for t in tensors)
    for more in ((False,), (True,)) if name == "rnn" else ((),):
        yield SampleInput(first, *rest, *flags, *more)


def info(name: str) -> OpInfo:
    op = getattr(torch.ops.etx, name)
    dtypes = {F32, F16, BF16}
    return OpInfo(f"etx.{name}", op=op, dtypes=dtypes, sample_inputs_func=partial(drawn, name))


def packed(matrix: Any, bits: int, groups: int) -> tuple[Any, Any]:
    """Return numbers as integers of so many bits, and scales, packed."""
    rows, depth = matrix.shape
    high = 2 ** (bits - 1) - 1
    parts = matrix.reshape(rows, groups, depth // groups)
    scales = parts.abs().amax(-1) / high if depth else torch.ones(rows, groups)
    whole = (parts / scales[..., None]).round().clamp(-high, high).to(torch.int8)
    store = pack_int4 if bits == 4 else pack
    return store(whole.reshape(rows, depth)), pack_groups(scales.T)


def drawn_packed(
    name: str, bits: int, info: Any, device: Any, dtype: Any, requires_grad: bool, **k: Any
) -> Any:
    torch.manual_seed(0)
    first = 3 if name == "lstm" else 2
    for size, (i, flags) in product((*SIZES, GROUPED), enumerate(product((False, True), repeat=2))):
        in_groups = size == GROUPED and bits == 4
        for sample in samples(name, size, flags, dtype, has_bias=i != 1):
            given: list[Any] = []
            for place, value in enumerate((sample.input, *sample.args)):
                is_projection = name == "lstm" and place == 7
                if place not in (first, first + 1) and not is_projection:
                    given.append(value)
                elif value is None:
                    given += [None, None]
                else:
                    given += packed(value, bits, value.shape[1] // 16 if in_groups else 1)
            yield SampleInput(given[0], *given[1:])


def packed_info(name: str, bits: int) -> OpInfo:
    op = getattr(torch.ops.etx, f"weight_only_{name}")
    draw = partial(drawn_packed, name, bits)
    return OpInfo(
        f"etx.weight_only_{name}", f"int{bits}", op=op, dtypes={F32}, sample_inputs_func=draw
    )


CASES = [
    Case(f"etx.{name}", dtypes=(dtype,), tol=tol, samples=99, own=info(name))
    for name in GATES
    for dtype, tol in ((F32, 2e-5), (F16, 4e-3), (BF16, 3e-2))
]
CASES += [
    Case(f"etx.weight_only_{name}", f"int{bits}", (F32,), 2e-5, 99, own=packed_info(name, bits))
    for name in GATES
    for bits in (8, 4)
]
