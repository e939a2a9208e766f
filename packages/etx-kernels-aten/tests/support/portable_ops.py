# SPDX-License-Identifier: BSD-3-Clause
"""The portable kernels in torch's dispatcher: `etx_portable::add.Tensor` beside `aten::add.Tensor`.

Each has the schema of ATen's functional operator, a CPU implementation that runs the kernel of its
out variant through a file of one call, and ATen's rule for fake tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import etx_runtime
import torch
from etx_exir.ir.ops import COPY_OF
from etx_schema import Target, read_pte
from one_call import program_of, variant_of
from torch._ops import OpOverload

NAMESPACE = "etx_portable"
UNDEFINED = ("empty", "rand", "dropout", "bernoulli")
"""Operators whose results are not initialised, or random."""


class Untaken(Exception):
    """The target file says that the kernel does not take these arguments."""


@cache
def target() -> Target:
    return Target.load("etx")


def counterparts() -> Iterator[OpOverload]:
    """Yield ATen's functional operators that a portable kernel computes."""
    copies = set(COPY_OF.values())
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        space, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        packet = getattr(torch.ops.aten, base, None) if space == "aten" else None
        op = getattr(packet, overload or "default", None) if packet else None
        if op is None or op._schema.is_mutable or any(word in base for word in UNDEFINED):
            continue
        is_new = op in copies or not any(r.alias_info is not None for r in op._schema.returns)
        returns = {str(r.type) for r in op._schema.returns}
        variant = variant_of(op) if returns == {"Tensor"} and is_new else None
        if variant is not None and variant.key in target().operators:
            yield op


def implementation(op: OpOverload) -> Callable[..., Any]:
    """Return a function that runs the portable kernel of `op`, into tensors of ATen's sizes."""

    def compute(*args: Any, **kwargs: Any) -> Any:
        plain = torch.utils._pytree.tree_map_only(torch.Tensor, contiguous, (args, kwargs))
        expected = op(*plain[0], **plain[1])
        many = isinstance(expected, (list, tuple))
        shapes = [like(x) for x in (expected if many else [expected])]
        program, inputs = program_of(op, *plain, shapes)
        problems = target().check(read_pte(program), [])
        if problems:
            raise Untaken(str(problems[0]))
        model = etx_runtime.load(program, kernels="portable", outputs="torch")
        found = model.run_method("forward", inputs)
        return tuple(found) if many else found[0]

    return compute


def like(x: torch.Tensor) -> torch.Tensor:
    return torch.empty(x.shape, dtype=x.dtype)


def contiguous(x: torch.Tensor) -> torch.Tensor:
    return x.detach().resolve_conj().resolve_neg().contiguous()


def register() -> tuple[torch.library.Library, dict[OpOverload, OpOverload]]:
    """Register all, and return the library and ATen's operators with ours."""
    library = torch.library.Library(NAMESPACE, "DEF")
    found = {}
    for op in counterparts():
        schema = str(op._schema).removeprefix("aten::")
        library.define(schema)
        name = schema.partition("(")[0]
        if any("Tensor" in str(a.type) for a in op._schema.arguments):
            library.impl(name, implementation(op), "CPU")
            library.impl(name, op, "Meta")
        else:
            library.impl(name, implementation(op), "CompositeExplicitAutograd")
        base, _, overload = name.partition(".")
        found[op] = getattr(getattr(getattr(torch.ops, NAMESPACE), base), overload or "default")
    return library, found
