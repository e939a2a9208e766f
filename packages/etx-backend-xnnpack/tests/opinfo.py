# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own samples of float32 through the partitioner, run and compared with eager.

A sample has several forms: all its tensors are arguments of the program, or one of them is, and
the others are constants, as weights are.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import etx_runtime
import torch
from etx_backend_xnnpack.nodes import TABLE
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from etx_schema import EtxError
from torch import Tensor, nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

TOLERANCE = 1e-5
MOST_FORMS = 4
LOOKED_AT = 6
ELSEWHERE = ("jiterator", "scatter_reduce")
"""What PyTorch has for GPUs only; what is one kernel of ours, with nothing to delegate."""
OUTCOMES = ("delegated", "in part", "outside", "refused", "not exported")


class Form(NamedTuple):
    """A call of an operator: `given` says which of its tensors are arguments of the program."""

    info: OpInfo
    number: int
    given: tuple[int, ...]
    sample: Any

    def __str__(self) -> str:
        name = ".".join(filter(None, (self.info.name, self.info.variant_test_name)))
        given = ", ".join(map(str, self.given))
        return f"{name} {self.number}, tensors {given} given: {self.sample.summary()}"


class Held(nn.Module):
    """A call whose other tensors are constants."""

    def __init__(self, form: Form) -> None:
        super().__init__()
        sample = form.sample
        self.op, self.given = form.info.op, form.given
        self.leaves, self.spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        for number, tensor in enumerate(tensors(sample)):
            if number not in form.given:
                self.register_buffer(f"constant_{number}", tensor)

    def forward(self, *given: Tensor) -> Any:
        arguments, number, filled = iter(given), 0, []
        for leaf in self.leaves:
            if isinstance(leaf, Tensor):
                held = number not in self.given
                leaf = getattr(self, f"constant_{number}") if held else next(arguments)
                number += 1
            filled.append(leaf)
        first, args, kwargs = pytree.tree_unflatten(filled, self.spec)
        return self.op(first, *args, **kwargs)


def tensors(sample: Any) -> list[Tensor]:
    """Return the tensors of a sample, each with memory of its own."""
    leaves = pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    return [leaf.detach().clone() for leaf in leaves if isinstance(leaf, Tensor)]


def samples(info: OpInfo) -> Iterator[Any]:
    """Yield an operator's samples, the same ones each time."""
    torch.manual_seed(0)
    yield from info.sample_inputs_func(info, "cpu", torch.float32, False)


def forms(info: OpInfo, most: int | None = None) -> Iterator[Form]:
    """Yield the forms of an operator's samples, of the first `most` ones."""
    for number, sample in enumerate(islice(samples(info), most)):
        count = len(tensors(sample))
        yield Form(info, number, tuple(range(count)), sample)
        for only in range(min(count, MOST_FORMS) if count > 1 else 0):
            yield Form(info, number, (only,), sample)


class Called(TorchDispatchMode):
    """Notes the operators that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(plain_name(func))
        return func(*args, **(kwargs or {}))


def plain_name(op: Any) -> str:
    """Return an operator's name, the same for a view and its copy."""
    return str(op.name()).split("::")[1].split(".")[0].removesuffix("_copy")


def reaches(info: OpInfo) -> bool:
    """Tell whether a sample of an operator calls one of the table."""
    lowered = {plain_name(op) for op in TABLE}
    with Called() as called, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for sample in islice(samples(info), LOOKED_AT):
            info.op(sample.input, *sample.args, **sample.kwargs)
    return bool(called.names & lowered)


def infos() -> list[OpInfo]:
    """Return the operators that have samples of float32 on a processor."""
    return [
        info
        for info in op_db
        if torch.float32 in info.dtypes and not info.name.startswith(ELSEWHERE)
    ]


def drawn_form(seed: int, number: int) -> Form:
    """Return a form of a sample of an operator that reaches the table."""
    draw = random.Random(f"{seed} {number}")
    while True:
        info = draw.choice(infos())
        found = list(islice(forms(info), 60)) if reaches(info) else []
        if found:
            return draw.choice(found)


@dataclass
class Outcome:
    """What became of a form; `operators` are those that were delegated."""

    kind: str
    operators: set[str] = field(default_factory=set)
    reasons: set[str] = field(default_factory=set)


def run(form: Form) -> Outcome:
    """Lower a form, run it and compare it with eager; raises where they differ."""
    module = Held(form).eval()
    inputs = tuple(tensors(form.sample)[number] for number in form.given)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = exported(module, inputs)
        if program is None:
            return Outcome("not exported")
        expected = results(module, inputs)
        try:
            edge = to_edge_transform_and_lower(
                program, partitioner=[XnnpackPartitioner(heavy_only=False)]
            )
            found = delegated(edge)
            if found.kind == "outside":
                return found
            file = edge.to_executorch().buffer
        except EtxError as error:
            return Outcome("refused", reasons={str(error).splitlines()[0]})
        actual = pytree.tree_leaves(etx_runtime.load(file, outputs="torch")(*inputs))
    assert len(actual) == len(expected)
    has_nan = any(bool(x.isnan().any()) for x in tensors(form.sample))
    for one, other in zip(actual, expected, strict=True):
        got = torch.as_tensor(one)
        if has_nan and got.is_floating_point():  # XNNPACK's sums of a NaN are infinite.
            got = got.where(~(other.isnan() & got.isinf()), torch.nan)
        same(got, other, is_random(program))
    return found


def results(module: nn.Module, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Return what eager computes."""
    found = pytree.tree_leaves(module(*(x.clone() for x in inputs)))
    return [torch.as_tensor(each).detach().resolve_conj().resolve_neg() for each in found]


def exported(module: nn.Module, inputs: tuple[Tensor, ...]) -> Any:
    """Return the program, None where torch, not yet ETX, refuses the call."""
    try:
        module(*(x.clone() for x in inputs))
        return torch.export.export(module, tuple(x.clone() for x in inputs))
    except Exception:
        return None


def delegated(edge: Any) -> Outcome:
    """Return what of a program is delegated."""
    module = edge.exported_program().graph_module
    parts = [getattr(module, n.target) for n in module.graph.find_nodes(op="get_attr")]
    inside = {
        str(node.target)
        for part in parts
        if hasattr(part, "original_module")
        for node in part.original_module.graph.nodes
        if node.op == "call_function" and node.target in TABLE
    }
    outside = [
        node
        for node in module.graph.nodes
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
    ]
    kind = "outside" if not inside else "in part" if outside else "delegated"
    return Outcome(kind, inside)


def is_random(program: Any) -> bool:
    """Tell whether an operator of a program draws numbers."""
    return any(
        torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        for node in program.graph.nodes
    )


def same(actual: Tensor, expected: Tensor, drawn: bool = False) -> None:
    """Compare a result with eager's, to a part of its largest number; sizes where it is random."""
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    if drawn:
        return
    floating = expected.is_floating_point() or expected.is_complex()
    finite = expected[expected.isfinite()] if floating else expected[:0]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    part = TOLERANCE if floating else 0
    torch.testing.assert_close(actual, expected, rtol=part, atol=part * largest, equal_nan=True)
