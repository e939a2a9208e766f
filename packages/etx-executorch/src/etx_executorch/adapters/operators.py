# SPDX-License-Identifier: BSD-3-Clause
"""`exir_ops.edge` and `exir_ops.backend`: operators of the Edge dialect are torch's own in ETX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from etx_exir.dim_order import FILE_NAMESPACE, NAMESPACE

__all__ = ["bind_pattern_to_op", "ops"]

Function = Callable[..., Any]


class Dialect:
    """The operators of a dialect by namespace."""

    def __getattr__(self, namespace: str) -> Any:
        if namespace.startswith("__"):
            raise AttributeError(namespace)
        return getattr(torch.ops, NAMESPACE if namespace == FILE_NAMESPACE else namespace)


class Dialects:
    """The dialects of a program on its way."""

    edge = Dialect()
    backend = Dialect()


ops = Dialects()


def bind_pattern_to_op(library: torch.library.Library, name: str) -> Callable[[Function], Function]:
    """Define an operator by what it computes; `name` is `namespace::name` or a whole schema."""

    def define(function: Function) -> Function:
        short = name.partition("::")[2] if "::" in name.partition("(")[0] else name
        operator = short.partition("(")[0]
        if "(" not in short:
            short += torch.library.infer_schema(function, mutates_args=())
        library.define(short)  # type: ignore[no-untyped-call]
        library.impl(operator, function, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
        return function

    return define
