# SPDX-License-Identifier: BSD-3-Clause
"""Load programs and execute their methods."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import Any, BinaryIO

from etx_runtime import _native, constraints, origins, plugins
from etx_runtime._native import MethodMeta, TensorInfo
from etx_runtime.errors import MetadataError

__all__ = [
    "BackendRegistry",
    "Method",
    "MethodMeta",
    "OperatorRegistry",
    "Program",
    "Runtime",
    "TensorInfo",
    "Verification",
]

Path = str | os.PathLike[str]
Source = Path | bytes | bytearray | memoryview | BinaryIO


class Verification(Enum):
    """How much of a file is checked: Minimal trusts it."""

    Minimal = 0
    InternalConsistency = 1


class Method:
    """A method with its memory; used by one thread at a time. Buffers keep their values."""

    def __init__(self, program: Program, name: str) -> None:
        self._program = program
        self.constraints = program.constraints.get(name, constraints.Constraints())
        self._native = _native.Method(
            program.native,
            name,
            list(self.constraints.names),
            partial(origins.describe_origin, program.native, name),
        )
        self._execute = self._native.caller(False)
        self._borrow = self._native.caller(True)

    @property
    def metadata(self) -> MethodMeta:
        """What the file says of the method."""
        return self._native.method_meta()

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the flat inputs; empty when the file has none."""
        return self.constraints.names

    def execute(self, inputs: Sequence[Any]) -> list[Any]:
        """Run the method on its flat inputs and return its flat outputs.

        Inputs are NumPy arrays, objects with DLPack or the buffer protocol, numbers, strings and
        None. Outputs are new NumPy arrays; types that NumPy lacks come as objects with
        ``__dlpack__``.
        """
        if self.constraints.dims:
            self.constraints.check(inputs)
        return self._execute(inputs)

    __call__ = execute

    def profile(self, inputs: Sequence[Any]) -> tuple[list[Any], list[tuple[int, str, int]]]:
        """Execute, and return the outputs and (instruction, operator, nanoseconds) of each step."""
        return self._native.profile(list(inputs))

    def time_executions(self, inputs: Sequence[Any], iterations: int) -> list[int]:
        """Execute once, then `iterations` times; return nanoseconds of each of these.

        The clock runs in C++ around the execution alone, without the conversion of arrays.
        """
        return self._native.time_executions(list(inputs), iterations)

    def input_value(self, index: int) -> Any:
        """Return the value that input `index` holds: of a number, the one given at export."""
        return self._native.input_value(index)

    def reset_state(self) -> None:
        """Put the initial values back into the method's buffers."""
        self._native.reset_state()

    def get_attribute(self, name: str) -> Any:
        """Return a copy of a mutable buffer by its fully qualified name."""
        return self._native.get_attribute(name)

    def set_instruction_budget(self, instructions: int) -> None:
        """End executions that jump backwards after so many instructions (10 million unless set)."""
        self._native.set_instruction_budget(instructions)

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes in use: planned arenas, method arena, largest scratch so far."""
        native = self._native
        return {
            "planned": native.planned_bytes(),
            "method": native.method_bytes(),
            "temp": native.temp_bytes(),
        }


class Program:
    """A verified program; immutable, so threads may share it."""

    def __init__(self, native: _native.Program) -> None:
        self.native = native
        self.constraints = constraints.read(native.named_data(constraints.KEY))

    @property
    def method_names(self) -> set[str]:
        """Names of the methods."""
        return set(self.native.method_names())

    def load_method(self, name: str) -> Method:
        """Resolve the kernels of method `name` and place its tensors in memory of its own."""
        return Method(self, name)

    def method_meta(self, name: str) -> MethodMeta:
        """Return what the file says of method `name`."""
        if name not in self.method_names:
            known = ", ".join(sorted(self.method_names))
            raise MetadataError(f"the program has no method '{name}' (it has: {known})")
        return self.native.method_meta(name)

    metadata = method_meta

    def named_data(self, key: str) -> bytes | None:
        """Return the bytes that the file stores under `key`, or None."""
        return self.native.named_data(key)


class BackendRegistry:
    """The backends of the loaded plugins."""

    @property
    def registered_backend_names(self) -> list[str]:
        """Names of all backends."""
        plugins.load_installed()
        return list(dict(_native.backends()))

    def is_available(self, backend_name: str) -> bool:
        """Tell whether a backend is there and works on this machine."""
        plugins.load_installed()
        return dict(reversed(_native.backends())).get(backend_name, False)


class OperatorRegistry:
    """The kernels of the loaded plugins."""

    @property
    def operator_names(self) -> set[str]:
        """Names of all operators, with overload."""
        plugins.load_installed()
        return set(_native.operator_names())


class Runtime:
    """The way in: ``Runtime.get().load_program("model.pte")``."""

    _instance: Runtime | None = None

    def __init__(self) -> None:
        self.backend_registry = BackendRegistry()
        self.operator_registry = OperatorRegistry()

    @staticmethod
    def get() -> Runtime:
        """Return the runtime of this process."""
        if Runtime._instance is None:
            Runtime._instance = Runtime()
        return Runtime._instance

    def load_program(
        self,
        data: Source,
        *,
        verification: Verification = Verification.InternalConsistency,
        data_paths: Sequence[Path] = (),
    ) -> Program:
        """Load a program from a path, from bytes (kept, not copied) or from a binary file object.

        A file is mapped and must not shrink while it is in use. `data_paths` are the `.ptd` files
        that hold weights of the program.
        """
        plugins.load_installed()
        verify = verification is not Verification.Minimal
        weights = [os.fspath(path) for path in data_paths]
        if isinstance(data, (str, os.PathLike)):
            return Program(_native.load_file(os.fspath(data), True, verify, weights))
        content = data if isinstance(data, (bytes, bytearray, memoryview)) else data.read()
        return Program(_native.load_buffer(content, verify, weights))

    def load_plugin(self, path: Path) -> tuple[str, str]:
        """Load a kernel or backend library and return its name and version."""
        return plugins.load_plugin(path)
