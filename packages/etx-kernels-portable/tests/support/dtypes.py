# SPDX-License-Identifier: BSD-3-Clause
"""Which dtypes each argument of a kernel may have: every combination that ATen allows is tried."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from example_calls import EXTRA, WHOLE
from harness import DTYPES, PLUGIN, KernelError
from intercept import (
    DECOMPOSITIONS,
    arguments_of,
    kernel_name,
    kind_of,
    kinds_of,
    out_like,
    variant_of,
)
from rows import boxes, projection, render
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

SAMPLES = 4
EXAMPLES = 4
NUMBERS = {"Int": 1, "Double": 1.5, "Bool": True}
Kinds = tuple[str, ...]
"""A dtype for each tensor, `none`, the kind of each number; empty for the rest."""


@dataclass
class Call:
    """A call of an operator that has a kernel."""

    op: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Seen(TorchDispatchMode):
    """Notes the calls of operators that have kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, list[Call]] = {}

    def __torch_dispatch__(
        self, op: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        variant = variant_of(op)
        if variant is not None:
            self.calls.setdefault(kernel_name(variant), []).append(Call(op, args, kwargs))
        elif op in DECOMPOSITIONS:
            with self:
                result = DECOMPOSITIONS[op](*args, **kwargs)
            if result is not NotImplemented:
                return result
        return op(*args, **kwargs)


def examples() -> dict[str, list[Call]]:
    """Return calls by kernel: of PyTorch's samples, and those that no sample reaches.

    Operators of namespace etx are left out: their kernels take what they state, nothing else.
    """
    from test_ops import CASES

    seen = Seen()
    torch.manual_seed(0)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for case in CASES:
            if case.op.startswith("etx."):
                continue
            for sample in case.inputs(case.dtypes[0])[:SAMPLES]:
                with seen:
                    case.info.op(sample.input, *sample.args, **sample.kwargs)
        for call in EXTRA:
            with seen:
                call()
    for op, *args in WHOLE:
        variant = variant_of(op)
        assert variant is not None
        seen.calls.setdefault(kernel_name(variant), []).append(Call(op, tuple(args), {}))
    return seen.calls


def chosen(calls: Sequence[Call]) -> list[Call]:
    """Return the calls with most tensors, none of them empty or of one element, told apart by
    which arguments are given."""
    forms: dict[tuple[Any, ...], Call] = {}
    for call in sorted(calls, key=weight, reverse=True):
        values = arguments_of(call.op, call.args, call.kwargs).values()
        given = [v for v in values if v is None or isinstance(v, torch.Tensor) or is_tensors(v)]
        form = tuple(kind_of("T", v) for v in given)
        forms.setdefault(form, call)
    return list(forms.values())[:EXAMPLES]


def weight(call: Call) -> int:
    values = tree_leaves((call.args, call.kwargs))
    sizes = [value.numel() for value in values if isinstance(value, torch.Tensor)]
    return -1 if 0 in sizes else sum(size > 1 for size in sizes)


def names_of(call: Call) -> list[str]:
    """Return the names of the kernel's arguments in order, to the first result."""
    variant = variant_of(call.op)
    assert variant is not None
    schema = variant._schema
    names = [a.name for a in schema.arguments if not a.is_out]
    return names + [a.name for a in schema.arguments if a.is_out][:1]


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


BY_NAME = {dtype_name(dtype): dtype for dtype in DTYPES}


def is_tensors(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and any(isinstance(v, torch.Tensor) for v in value)
    )


def choices(argument: Any, value: Any, optional: bool) -> tuple[str, ...]:
    """Return what the sweep puts in the place of an argument, nothing where it stays."""
    dtypes = tuple(BY_NAME)
    if isinstance(value, torch.Tensor) or is_tensors(value):
        return (*dtypes, "none") if optional and not is_tensors(value) else dtypes
    if argument.name == "dtype" and str(argument.type) in ("Optional[int]", "int"):
        return (*dtypes, "none")
    if str(argument.type) in ("number", "Optional[number]") and isinstance(
        value, (bool, int, float)
    ):
        return tuple(NUMBERS)
    return ()


def replaced(value: Any, kind: str) -> Any:
    """Return `value` with that dtype or of that kind."""
    if kind == "none":
        return None
    if kind in NUMBERS:
        return NUMBERS[kind]
    if isinstance(value, torch.Tensor):
        return tame(value).to(BY_NAME[kind])
    if is_tensors(value):
        return [None if v is None else tame(v).to(BY_NAME[kind]) for v in value]
    return BY_NAME[kind]


def tame(value: torch.Tensor) -> torch.Tensor:
    """Return values that no conversion makes zero or too large."""
    return value.abs().clamp(0, 3) + 1 if value.is_floating_point() else value


def combinations(domains: Sequence[tuple[str, ...]]) -> Iterator[Kinds]:
    """Yield what to try: all of two places, of more each pair while the rest is alike."""
    places = [i for i, domain in enumerate(domains) if domain]
    found: dict[Kinds, None] = {}
    if len(places) <= 2:
        return itertools.product(*(domain or ("",) for domain in domains))
    for first, second in itertools.permutations(places, 2):
        for one, other in itertools.product(domains[first], domains[second]):
            row = [(one if one in d else d[0]) if d else "" for d in domains]
            row[first], row[second] = one, other
            found[tuple(row)] = None
    return iter(found)


def expected_of(op: OpOverload, given: Mapping[str, Any]) -> Any:
    """Return the results, as meta tensors where these do; None where ATen refuses."""
    for values in (tree_map_only(torch.Tensor, lambda t: t.to("meta"), dict(given)), given):
        try:
            return call_with(op, values)
        except Exception:
            continue
    return None


def call_with(op: OpOverload, given: Mapping[str, Any]) -> Any:
    args, kwargs = [], {}
    for argument in op._schema.arguments:
        if argument.name not in given:
            continue
        if argument.kwarg_only:
            kwargs[argument.name] = given[argument.name]
        else:
            args.append(given[argument.name])
    return op(*args, **kwargs)


def tried(kernel: str, call: Call) -> Iterator[tuple[Kinds, bool]]:
    """Yield each combination that ATen allows, results included, and whether the kernel ran."""
    arguments = arguments_of(call.op, call.args, call.kwargs)
    schema = {a.name: a for a in call.op._schema.arguments}
    optional = {name: str(schema[name].type).startswith("Optional") for name in arguments}
    domains = [choices(schema[name], value, optional[name]) for name, value in arguments.items()]
    for row in combinations(domains):
        given = {
            name: replaced(value, kind) if kind else value
            for (name, value), kind in zip(arguments.items(), row, strict=True)
        }
        expected = expected_of(call.op, given)
        reference = [expected] if isinstance(expected, torch.Tensor) else list(expected or ())
        if reference and all(isinstance(w, torch.Tensor) and w.dtype in DTYPES for w in reference):
            yield ran(kernel, call, given, reference)


def ran(
    kernel: str, call: Call, given: Mapping[str, Any], reference: Sequence[torch.Tensor]
) -> tuple[Kinds, bool]:
    """Run the kernel; return the kinds of all its arguments and whether it took them."""
    variant = variant_of(call.op)
    assert variant is not None
    parameters = PLUGIN.kernels[kernel].parameters
    inputs = [given[a.name] for a in variant._schema.arguments if not a.is_out]
    kinds = kinds_of(PLUGIN.kernels[kernel], inputs)
    outs: list[Any] = []
    if variant is not call.op:
        outs = [out_like(w) for w in reference]
        if parameters[-1].letter == "L":
            outs = [outs]
        kinds.append(dtype_name(reference[0].dtype))
    try:
        PLUGIN.call(kernel, *inputs, *outs)
    except KernelError:
        return tuple(kinds), False
    return tuple(kinds), True


def rows_of_kernels() -> dict[str, dict[str, Any]]:
    """Return what each kernel takes, of those that PyTorch's own operators reach."""
    rows = {}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for kernel, calls in sorted(examples().items()):
            found: dict[Kinds, bool] = {}
            for kinds, did in (row for call in chosen(calls) for row in tried(kernel, call)):
                found[kinds] = found.get(kinds, False) or did
            rows[kernel] = row_of(names_of(calls[0]), found)
    return rows


def row_of(names: Sequence[str], found: Mapping[Kinds, bool]) -> dict[str, Any]:
    """Return the row of one kernel from what was tried and whether it ran."""
    taken = {kinds for kinds, ran in found.items() if ran}
    if not taken:
        raise ValueError(f"no combination of {', '.join(names)} ran; the example is wrong")
    parts = [{"arguments": render(names, box, projection(found))} for box in boxes(taken, {*found})]
    return parts[0] if len(parts) == 1 else {"either": parts}
