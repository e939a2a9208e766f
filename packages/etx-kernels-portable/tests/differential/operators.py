# SPDX-License-Identifier: BSD-3-Clause
"""What eager computes for a kernel: the overload without outs, or a reference of ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from harness import PLUGIN, Kernel
from torch._ops import OpOverload
from torch.utils._pytree import tree_map

from differential.registry import REFERENCES

PLACEMENT = {"dtype", "layout", "device", "pin_memory"}


@dataclass(frozen=True)
class Eager:
    """Takes the arguments of a kernel without its outs."""

    function: Callable[..., Any]
    names: tuple[str, ...] = ()
    takes_dtype: bool = False
    written: tuple[int, ...] = ()

    def __call__(self, args: Sequence[Any], dtype: torch.dtype | None) -> list[Any]:
        """Return what the kernel writes, in the order of its parameters."""
        args = [a.clone() if i in self.written else a for i, a in enumerate(args)]
        named = {"dtype": dtype} if self.takes_dtype else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.names:
                given = dict(zip(self.names, args, strict=True))
                result = self.function(**given, **named)
            else:
                result = self.function(*args)
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        written = [args[i] for i in self.written]
        return results if len(written) == 1 else [*written, *results]


def overload(name: str) -> OpOverload:
    base, _, suffix = name.partition(".")
    namespace, packet = base.split("::")
    found: OpOverload = getattr(getattr(getattr(torch.ops, namespace), packet), suffix or "default")
    return found


def without_outs(op: OpOverload) -> OpOverload:
    """Return the overload that takes the same arguments and returns new tensors."""
    expected = {a.name: str(a.type) for a in op._schema.arguments if not a.is_out}
    if len(expected) == len(op._schema.arguments):
        return op
    packet = op.overloadpacket
    for name in packet.overloads():
        candidate: OpOverload = getattr(packet, name)
        arguments = candidate._schema.arguments
        given = {a.name: str(a.type) for a in arguments if not a.is_out}
        alike = all(given.get(name) == kind for name, kind in expected.items())
        if alike and len(given) == len(arguments) and set(given) - set(expected) <= PLACEMENT:
            return candidate
    raise LookupError(f"{op}: no overload without outs")


@cache
def eager_of(kernel: str) -> Eager:
    if kernel in REFERENCES:
        return Eager(REFERENCES[kernel])
    if kernel.startswith("quantized_decomposed::"):
        suffixes = {".out": "", ".Tensor_out": ".tensor", ".dtype_out": ".dtype"}
        base, dot, suffix = kernel.partition(".")
        return Eager(overload(base + suffixes[dot + suffix]))
    out = overload(kernel)
    op = without_outs(out)
    names = tuple(a.name for a in out._schema.arguments if not a.is_out)
    own = [a.name for a in op._schema.arguments]
    written = tuple(
        names.index(a.name)
        for a in op._schema.arguments
        if a.alias_info is not None and a.alias_info.is_write
    )
    return Eager(op, names, "dtype" in own and "dtype" not in names, written)


def exact(kernel: Kernel, args: Sequence[Any], dtype: torch.dtype | None) -> list[Any] | None:
    """Return the results in float64, as far as eager computes them from float64 operands."""
    if dtype is not None and dtype.is_floating_point:
        dtype = torch.float64

    def widened(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return value.double()
        if isinstance(value, torch.Tensor) and value.dtype == torch.complex64:
            return value.to(torch.complex128)
        if isinstance(value, torch.dtype) and value.is_floating_point:
            return torch.float64
        return value

    try:
        return eager_of(kernel.name)(tree_map(widened, list(args)), dtype)
    except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
        return None


KERNELS = tuple(PLUGIN.kernels.values())
