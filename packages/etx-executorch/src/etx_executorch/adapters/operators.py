# SPDX-License-Identifier: BSD-3-Clause
"""`exir_ops.edge` and `exir_ops.backend`: torch's operators under the names of the Edge dialect."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from etx_exir.ir.dim_order import FILE_NAMESPACE, NAMESPACE
from etx_exir.ir.out_variants import out_variant
from torch._ops import OpOverload, OpOverloadPacket

__all__ = ["BackendOpOverload", "EdgeOpOverload", "OverloadPacket", "bind_pattern_to_op", "ops"]

Function = Callable[..., Any]
TREE = "etx_executorch.exir.dialects"


class EdgeOpOverload(OpOverload):
    """An operator of the Edge dialect: it computes what torch's does, and is equal to it.

    `_op` is torch's overload; `__name__` has the namespace, `aten.relu.default`.
    """

    def __init__(self, op: OpOverload, module: str = f"{TREE}.edge._ops") -> None:
        self.__dict__.update(op.__dict__)
        self._op = op
        self.__module__ = module
        self.__name__ = str(op).replace(f"{NAMESPACE}.", f"{FILE_NAMESPACE}.")

    def __eq__(self, other: object) -> bool:
        """Tell whether both are one operator of torch."""
        return bool(torch_op(self) is torch_op(other))

    def __hash__(self) -> int:
        return hash(self._op)

    def __str__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__name__}>"

    def to_out_variant(self) -> OpOverload:
        """Return the overload of torch that writes into a tensor it is given."""
        found = out_variant(self._op)
        packet = self._overloadpacket
        overload = "default" if found is None else found.overload or "default"
        if found is None or overload not in packet.overloads():  # type: ignore[no-untyped-call]
            raise RuntimeError(f"{self.__name__} has no out variant among torch's operators")
        chosen = getattr(packet, overload)
        assert isinstance(chosen, OpOverload)
        return chosen


class BackendOpOverload(EdgeOpOverload):
    """An operator that a backend defines for its own graphs."""

    def __init__(self, op: OpOverload) -> None:
        super().__init__(op, f"{TREE}.backend._ops")


@cache
def edge_op(op: OpOverload) -> EdgeOpOverload:
    """Return the operator of the Edge dialect that is torch's `op`."""
    return EdgeOpOverload(op)


@cache
def backend_op(op: OpOverload) -> BackendOpOverload:
    """Return the operator of the Backend dialect that is torch's `op`."""
    return BackendOpOverload(op)


def torch_op(target: Any) -> Any:
    """Return torch's operator for one of a dialect; all else is returned as it is."""
    return target._op if isinstance(target, EdgeOpOverload) else target


class OverloadPacket:
    """The overloads of an operator in a dialect, by name."""

    def __init__(self, packet: OpOverloadPacket, make: Function) -> None:
        self._packet = packet
        self._make = make
        self.__name__ = self.__qualname__ = packet.__name__
        self.__module__ = f"{TREE}.edge._ops"

    def __getattr__(self, overload: str) -> Any:
        found = getattr(self._packet, overload)
        if isinstance(found, OpOverload):
            found = self._make(found)
            setattr(self, overload, found)
        return found

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the overload that takes these arguments."""
        return self._packet(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._packet}>"


class Namespace:
    """The operators of a namespace in a dialect."""

    def __init__(self, namespace: Any, make: Function) -> None:
        self._namespace = namespace
        self._make = make

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._namespace, name)
        if isinstance(found, OpOverloadPacket):
            found = OverloadPacket(found, self._make)
            setattr(self, name, found)
        return found


class Dialect:
    """The operators of a dialect by namespace."""

    def __init__(self, make: Function) -> None:
        self._make = make

    def __getattr__(self, namespace: str) -> Any:
        if namespace.startswith("__"):
            raise AttributeError(namespace)
        place = NAMESPACE if namespace == FILE_NAMESPACE else namespace
        found = Namespace(getattr(torch.ops, place), self._make)
        setattr(self, namespace, found)
        return found


class Dialects:
    """The dialects of a program on its way."""

    edge = Dialect(edge_op)
    backend = Dialect(backend_op)


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
