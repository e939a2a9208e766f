# SPDX-License-Identifier: BSD-3-Clause
"""Runs the kernel of each ATen call that eager makes and compares the two results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import torch
from case import Case
from etx_schema.targets import rows as row_of
from etx_schema.targets.takes import misfit_of
from harness import DTYPES, PLUGIN, Kernel, Out, Over, dim_order_of
from provider import PROVIDER
from torch._decomp import core_aten_decompositions
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

DECOMPOSITIONS: dict[OpOverload, Callable[..., Any]] = core_aten_decompositions()
PLACEMENT = {"dtype", "layout", "device", "pin_memory"}


def kernel_name(op: OpOverload) -> str:
    """Return the name a program would give `op`; the default overload has no suffix."""
    overload = op._schema.overload_name
    return op._schema.name + (f".{overload}" if overload else "")


def takes_arguments_of(variant: OpOverload, op: OpOverload) -> bool:
    """True when `variant` is `op` with outs, perhaps without what says where results lie."""
    given = {a.name: str(a.type) for a in op._schema.arguments}
    reference = {a.name: str(a.type) for a in variant._schema.arguments if not a.is_out}
    dropped = set(given) - set(reference)
    same = all(given.get(name) == kind for name, kind in reference.items())
    return same and dropped <= PLACEMENT


@cache
def variant_of(op: OpOverload) -> OpOverload | None:
    """Return the overload of `op` for which the plugin has a kernel."""
    if kernel_name(op) in PLUGIN.kernels:
        return op
    namespace, name = op._schema.name.split("::")
    for candidate in (name, f"{name}_copy"):
        packet = getattr(getattr(torch.ops, namespace), candidate, None)
        for overload in packet.overloads() if packet else ():
            variant = getattr(packet, overload)
            if kernel_name(variant) in PLUGIN.kernels and takes_arguments_of(variant, op):
                return variant
    return None


def arguments_of(
    op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return every argument by name, defaults filled in."""
    found = dict(kwargs)
    for i, argument in enumerate(op._schema.arguments):
        if i < len(args):
            found[argument.name] = args[i]
        elif argument.name not in found:
            found[argument.name] = argument.default_value if argument.has_default_value() else None
    return found


def is_complex(values: Any) -> bool:
    return any(isinstance(v, torch.Tensor) and v.is_complex() for v in tree_leaves(values))


@dataclass
class Tolerance:
    """What assert_close may forgive; None: its own defaults for the dtype."""

    value: float | None = None

    def check(self, actual: Any, expected: Any) -> None:
        torch.testing.assert_close(
            actual, expected, rtol=self.value, atol=self.value, equal_nan=True
        )


class Intercept(TorchDispatchMode):
    """Sends each call of an operator with a kernel to the plugin, and to eager."""

    def __init__(self, tolerance: float | None = None):
        super().__init__()
        self.tolerance = Tolerance(tolerance)
        self.reached: list[str] = []

    def __torch_dispatch__(
        self, op: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        variant = variant_of(op)
        if variant is None:
            return self.decompose(op, args, kwargs)
        arguments = arguments_of(op, args, kwargs)
        names = [a.name for a in variant._schema.arguments if not a.is_out]
        given = [arguments[name] for name in names]
        kernel = PLUGIN.kernels[kernel_name(variant)]
        frozen = self.freeze(given) if op._schema.is_mutable else given
        expected = op(*args, **kwargs)
        if self.can_run(kernel, op, frozen, expected):
            self.run(kernel, frozen, expected, in_place=variant is op)
        return expected

    def freeze(self, given: list[Any]) -> list[Any]:
        return [g.clone() if isinstance(g, torch.Tensor) else g for g in given]

    def decompose(self, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if op in DECOMPOSITIONS:
            with self:
                result = DECOMPOSITIONS[op](*args, **kwargs)
            if result is not NotImplemented:
                return result
        return op(*args, **kwargs)

    def can_run(self, kernel: Kernel, op: OpOverload, given: list[Any], expected: Any) -> bool:
        if torch.Tag.nondeterministic_seeded in op.tags or is_complex([given, expected]):
            return False
        leaves = [v for v in tree_leaves([given, expected]) if isinstance(v, torch.Tensor)]
        if any(v.dtype not in DTYPES for v in leaves):
            return False
        principal = next((v for v in leaves if v.dim() or len(leaves) == 1), None)
        if principal is not None and not kernel.lists(principal.dtype):
            return False
        return PROVIDER.is_own or misfit(kernel, written(op, given, expected)) is None

    def run(self, kernel: Kernel, given: list[Any], expected: Any, in_place: bool) -> None:
        reference = [expected] if isinstance(expected, torch.Tensor) else list(expected)
        outs = [] if in_place else [out_like(w) for w in reference]
        listed = kernel.parameters[-1].letter == "L"
        results = PLUGIN.call(kernel.name, *given, *([outs] if listed else outs))
        self.reached.append(kernel.name)
        assert_listed(kernel, [*given, *([] if in_place else reference)])
        if row_of.in_place(rows()[kernel.name]):
            self.run_over(kernel, given, results[0])
        if "empty" in kernel.name:
            reference = [
                torch.empty_like(w).copy_(r) for w, r in zip(reference, results, strict=True)
            ]
        for actual, want in zip(results, reference, strict=True):
            try:
                self.tolerance.check(actual, want)
            except AssertionError as error:
                shown = [summary(v) for v in given]
                raise AssertionError(f"{kernel.name}({', '.join(shown)}): {error}") from None

    def run_over(self, kernel: Kernel, given: list[Any], expected: torch.Tensor) -> None:
        """Compare with the result that lies on an argument."""
        for i, value in enumerate(given):
            if isinstance(value, torch.Tensor) and is_like(value, expected):
                (actual,) = PLUGIN.call(kernel.name, *given, Over(i))
                torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


class Reach(Intercept):
    """Collects the kernels that a call would be compared with."""

    def run(self, kernel: Kernel, given: list[Any], expected: Any, in_place: bool) -> None:
        self.reached.append(kernel.name)


def reached(case: Case, dtype: torch.dtype, count: int | None = None) -> set[str]:
    """Return the kernels that a case's samples reach, or only PyTorch's `count` first ones."""
    found: set[str] = set()
    samples = case.inputs(dtype) if count is None else islice(case.samples_of(dtype), count)
    for sample in samples:
        with Reach() as reach, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case.info.op(sample.input, *sample.args, **sample.kwargs)
        found |= set(reach.reached)
    return found


def is_like(value: torch.Tensor, result: torch.Tensor) -> bool:
    """Tell whether the result may lie on `value`: they have dtype, sizes and layout in common."""
    layouts = [(t.dtype, t.shape, dim_order_of(t)) for t in (value, result)]
    return bool(value.numel()) and layouts[0] == layouts[1] and layouts[0][2] is not None


def assert_listed(kernel: Kernel, values: list[Any]) -> None:
    """What a kernel took must be in its row of the target; it may take more without elements."""
    if any(isinstance(value, torch.Tensor) and value.numel() == 0 for value in tree_leaves(values)):
        return
    found = misfit(kernel, values)
    assert found is None, f"{PROVIDER.target} refuses {kernel.name} {found}"


def written(op: OpOverload, given: list[Any], expected: Any) -> list[Any]:
    """Return all arguments of the kernel: what is given, and results that are not among that."""
    if kernel_name(op) in PLUGIN.kernels:
        return given
    return [*given, *([expected] if isinstance(expected, torch.Tensor) else expected)]


def misfit(kernel: Kernel, values: list[Any]) -> str | None:
    """Return what of a call the provider's target refuses; None where it takes all of it."""
    kinds = [[kind] if kind else [] for kind in kinds_of(kernel, values)]
    results = [value for value in values if isinstance(value, torch.Tensor)]
    dtype = kind_of("T", results[-1]) if kernel.parameters[-1].letter != "L" and results else None
    return misfit_of(rows()[kernel.name], kinds, dtype)


@cache
def rows() -> dict[str, Any]:
    return PROVIDER.rows()


def kinds_of(kernel: Kernel, values: Sequence[Any]) -> list[str]:
    return [kind_of(p.letter, v) for p, v in zip(kernel.parameters, values, strict=False)]


def kind_of(letter: str, value: Any) -> str:
    """Return what a row says of this value; empty for what it says nothing of."""
    if letter in "TLO":
        values = value if isinstance(value, (list, tuple)) else [value]
        tensors = [each for each in values if isinstance(each, torch.Tensor)]
        if tensors:
            return str(tensors[0].dtype).removeprefix("torch.")
        return "none" if value is None else ""
    if letter == "s" and value is not None:
        return {bool: "Bool", int: "Int", float: "Double"}.get(type(value), "")
    return ""


def out_like(expected: torch.Tensor) -> Out:
    order = dim_order_of(expected)
    return Out(list(expected.shape), expected.dtype, order)


def summary(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return f"{dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
        return f"[{', '.join(map(summary, value))}]"
    return repr(value)
