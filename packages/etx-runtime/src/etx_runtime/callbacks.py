# SPDX-License-Identifier: BSD-3-Clause
"""Kernels and backends written in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from etx_runtime import _native
from etx_runtime.errors import PluginError

__all__ = [
    "Backend",
    "CompileSpecs",
    "register_backend",
    "register_kernel",
    "ticks",
    "trace_event",
    "unregister",
]


class CompileSpecs(dict[str, bytes]):
    """The compile specs of a delegate by key, and what else its `init` may ask for."""

    def __init__(
        self,
        specs: Mapping[str, bytes],
        method: str,
        named_data: Callable[[str], bytes],
        options: Mapping[str, bool | int | str] = MappingProxyType({}),
    ) -> None:
        super().__init__(specs)
        self.method = method
        """Name of the method that is being loaded."""
        self.named_data = named_data
        """Return the bytes under a key of the program or its data files; KeyError if none are."""
        self.options = options
        """What the caller of the load asks of this backend, by key."""


class Backend(Protocol):
    """What `register_backend` takes; `is_available()` and `destroy(handle)` are optional."""

    def init(self, blob: bytes, specs: CompileSpecs, /) -> Any:
        """Prepare a delegate's blob and return what `execute` gets as its handle."""

    def execute(self, handle: Any, args: list[Any], /) -> Any:
        """Run on the inputs, then outputs, of one call.

        Write into the outputs, or return arrays: one for each of the last arguments.
        """


def register_kernel(name: str, function: Callable[..., Any]) -> None:
    """Run operator `name` (`my::op.out`) with `function`, in methods that are loaded from now on.

    `function` gets the operator's arguments in the order of its schema, the out arguments last:
    tensors as NumPy views, those it may write writable, others as Python values. It writes into
    the out arguments, or returns an array for each of them; then their shapes may change. It comes
    before all kernels of that name. An exception is the `__cause__` of the method's error.
    """
    _check(name, callable(function), "a function")
    _native.register_kernel(name, function)


def register_backend(name: str, backend: Backend) -> None:
    """Run delegates called `name` with `backend`, in methods that are loaded from now on.

    Tensors are NumPy views of the method's memory; constants cannot be written. An exception in
    `init` is the `__cause__` of the LoadError, one in `execute` that of the ExecutionError.
    """
    is_backend = all(callable(getattr(backend, part, None)) for part in ("init", "execute"))
    _check(name, is_backend, "an object with init and execute")
    _native.register_backend(name, backend)


def unregister(name: str) -> bool:
    """Take registered kernels or backends called `name` away; loaded methods keep them.

    Return whether there was one.
    """
    return _native.unregister(name)


def _check(name: str, is_right: bool, expected: str) -> None:
    if not isinstance(name, str) or not name or "\0" in name:
        raise PluginError(f"the name must be a text, got {name!r}")
    if not is_right:
        raise PluginError(f"'{name}' needs {expected}")


def ticks() -> int:
    """Return the time on the clock that events are recorded with."""
    return _native.ticks()


def trace_event(name: str | int, start: int, end: int, metadata: bytes = b"") -> bool:
    """Record that something within a backend's `execute` ran from `start` to `end`, in `ticks()`.

    For the thread that executes. `name` is a text, or a number that the compiler noted for the
    delegate (`ids` of ``etx/debug``). Return False where nobody records.
    """
    return _native.trace_event(name, start, end, metadata)
