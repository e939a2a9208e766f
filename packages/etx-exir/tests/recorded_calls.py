# SPDX-License-Identifier: BSD-3-Clause
"""Calls of ATen operators as PyTorch's samples make them, by operator: what a graph is drawn from.

Only operators whose kernel, under whatever overload, is a row of the table of target `etx`, and
those that PyTorch tags as core; none that write into an argument.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import torch
import torch.ao.quantization.fx._decomposed
from core_calls import CALLS
from etx_exir.target.check import load_target
from torch import Tensor
from torch._ops import OpOverload
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves

SAMPLES, KEPT = 3, 4
LARGEST, HIGHEST = 4000, 5
DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.complex64,
)
aten = torch.ops.aten
decomposed = torch.ops.quantized_decomposed


class Call(NamedTuple):
    """An operator with the leaves of its arguments; tensors among them may be replaced."""

    target: OpOverload
    leaves: tuple[Any, ...]
    spec: Any

    @property
    def tensors(self) -> list[Tensor]:
        return [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]

    @property
    def dtype(self) -> torch.dtype | None:
        """Return the dtype of the first tensor."""
        return self.tensors[0].dtype if self.tensors else None


def call_of(target: OpOverload, args: Any, kwargs: Any) -> Call:
    leaves, spec = tree_flatten((args, dict(kwargs)))
    return Call(target, tuple(leaves), spec)


class Recorder(TorchDispatchMode):
    """Keeps the calls below a function of Python."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[tuple[OpOverload, torch.dtype | None], list[Call]] = {}

    def __torch_dispatch__(
        self, target: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if is_drawable(target):
            self.keep(call_of(target, args, kwargs or {}))
        return target(*args, **(kwargs or {}))

    def keep(self, call: Call) -> None:
        known = self.calls.setdefault((call.target, call.dtype), [])
        if len(known) < KEPT and all(map(is_plain, call.tensors)):
            leaves = (x.clone() if isinstance(x, Tensor) else x for x in call.leaves)
            known.append(call._replace(leaves=tuple(leaves)))


def is_plain(x: Tensor) -> bool:
    """Whether a graph may have this tensor as an input."""
    dense = x.layout == torch.strided and not x.is_quantized
    small = dense and x.numel() <= LARGEST and x.dim() <= HIGHEST
    return small and x.dtype in DTYPES and not (x.is_conj() or x.is_neg())


@cache
def kernel_names() -> frozenset[str]:
    """Return the names that the table's rows have in ATen: `view` for `aten::view_copy.out`."""
    rows = (row.partition("::") for row in load_target("etx").operators)
    bare = {name.partition(".")[0] for space, _, name in rows if space == "aten"}
    return frozenset(bare | {name.removesuffix("_copy") for name in bare})


@cache
def is_drawable(target: OpOverload) -> bool:
    name = target._schema.name.partition("::")[2]
    known = name in kernel_names() or torch.Tag.core in target.tags
    return known and not target._schema.is_mutable


@cache
def recorded() -> dict[OpOverload, list[Call]]:
    """Return the calls that are known, by operator."""
    recorder, found = Recorder(), {}
    for call in by_hand():
        found.setdefault(call.target, []).append(call)
    for op in op_db:
        for dtype in DTYPES:
            if dtype in op.dtypes:
                record_samples(recorder, op, dtype)
    for (target, _), calls in recorder.calls.items():
        found.setdefault(target, []).extend(calls)
    return {target: calls for target, calls in found.items() if calls}


def record_samples(recorder: Recorder, op: Any, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    refusals = (RuntimeError, TypeError, AssertionError, ValueError, IndexError)
    with suppress(*refusals), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in islice(op.sample_inputs_func(op, "cpu", dtype, False), SAMPLES):
            with recorder:
                op.op(sample.input, *sample.args, **sample.kwargs)


def by_hand() -> Iterator[Call]:
    """What no sample calls: composite operators, the core's, quantization's."""
    for group in CALLS.values():
        for target, *args in group:
            kwargs = args.pop() if args and isinstance(args[-1], dict) else {}
            if is_drawable(target) and tree_leaves(args) and is_result_tensor(target):
                yield call_of(target, tuple(args), kwargs)
    for target, *args in MORE:
        yield call_of(target, tuple(args), {})


def is_result_tensor(target: OpOverload) -> bool:
    return all("Tensor" in str(result.type) for result in target._schema.returns)


ROWS = torch.linspace(-2, 2, 24).reshape(4, 6)
IMAGE = torch.linspace(-3, 2, 128).reshape(2, 4, 4, 4).sin()
BYTES = torch.arange(-12, 12, dtype=torch.int8).reshape(4, 6)
SCALES, ZEROS = torch.tensor([0.1, 0.2, 0.05, 0.3]), torch.tensor([0, 3, -2, 1])
ONE, NONE = torch.tensor(0.05), torch.tensor(2)
INT8 = (-128, 127, torch.int8)
MORE = (
    (aten.linear.default, ROWS, ROWS.flip(0), SCALES),
    (aten.linear.default, ROWS.half(), ROWS.flip(0).half()),
    (aten.linear.default, ROWS.double(), ROWS.flip(1).double()),
    (aten.pixel_shuffle.default, IMAGE, 2),
    (aten.pixel_unshuffle.default, IMAGE, 2),
    (aten.var_mean.correction, IMAGE, [1]),
    (aten.rsub.Scalar, ROWS, 2),
    (aten.narrow.default, ROWS, 1, 1, 3),
    (aten.floor_divide.default, ROWS, ONE),
    (aten.conv_transpose2d.input, IMAGE, IMAGE.permute(1, 0, 2, 3).contiguous()),
    (decomposed.quantize_per_tensor.default, ROWS, 0.05, 3, *INT8),
    (decomposed.quantize_per_tensor.tensor, ROWS, ONE, NONE, *INT8),
    (decomposed.dequantize_per_tensor.default, BYTES, 0.05, 3, *INT8),
    (decomposed.dequantize_per_tensor.tensor, BYTES, ONE, NONE, *INT8),
    (decomposed.quantize_per_channel.default, ROWS, SCALES, ZEROS, 0, *INT8),
    (decomposed.dequantize_per_channel.default, BYTES, SCALES, ZEROS, 0, *INT8),
    (decomposed.choose_qparams.tensor, ROWS, -128, 127, 1e-6, torch.int8),
    (decomposed.choose_qparams_per_token_asymmetric.default, ROWS, torch.int8),
    (decomposed.quantize_per_token.default, ROWS, SCALES[:, None], ZEROS[:, None], *INT8),
    (
        decomposed.dequantize_per_token.default,
        BYTES,
        SCALES[:, None],
        ZEROS[:, None],
        *INT8,
        torch.float32,
    ),
)
