# SPDX-License-Identifier: BSD-3-Clause
"""The errors of the runtime."""

from __future__ import annotations

from etx_schema import EtxError


class RuntimeFailure(EtxError):
    """Base of the runtime's errors, with what the C++ side knows of the failure.

    `code` is an `etx::Error`, `name` the operator or backend, `instruction` its place in the
    method, `index` that of the input; empty or -1 where the failure concerns none.
    """

    default_code = 0x01

    def __init__(
        self, message: str, code: int = 0, name: str = "", instruction: int = -1, index: int = -1
    ) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.name = name
        self.instruction = instruction
        self.index = index


class LoadError(RuntimeFailure):
    """Report a program or method that cannot be loaded."""

    default_code = 0x23


class InputError(RuntimeFailure, ValueError):
    """Report an input that the method does not take; `index` is its position."""

    default_code = 0x12


class ExecutionError(RuntimeFailure):
    """Report an operator or backend that failed; `name` and `instruction` say which."""


class PluginError(RuntimeFailure):
    """Report a kernel or backend that cannot be used."""

    default_code = 0x12


class MetadataError(RuntimeFailure, LookupError):
    """Report a method, tensor or buffer that a program does not have."""

    default_code = 0x20
