# SPDX-License-Identifier: BSD-3-Clause
"""ETX's runtime with torch tensors in and out, as `executorch.runtime` has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import etx_runtime
import numpy as np
import torch
from etx_runtime import MethodMeta, Verification
from torch.utils import _pytree as pytree
from torch.utils.dlpack import from_dlpack

from etx_executorch.finder import absent

__all__ = ["Method", "Program", "Runtime", "load_program", "run"]


def run(method: etx_runtime.Method, inputs: Any) -> list[Any]:
    """Execute a method on its inputs, flat or nested, and return its flat outputs."""
    leaves = [x.detach() if isinstance(x, torch.Tensor) else x for x in pytree.tree_leaves(inputs)]
    return [_tensor(value) for value in method.execute(leaves)]


def _tensor(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    return from_dlpack(value) if hasattr(value, "__dlpack__") else value


class Method:
    """A loaded method."""

    def __init__(self, method: etx_runtime.Method) -> None:
        self._method = method

    def execute(self, inputs: Sequence[Any] = ()) -> list[Any]:
        """Run it on its inputs and return its outputs, tensors as those of torch."""
        return run(self._method, inputs)

    @property
    def metadata(self) -> MethodMeta:
        """What the file says of the method."""
        return self._method.metadata


class Program:
    """A verified program."""

    def __init__(self, program: etx_runtime.Program) -> None:
        self._program = program

    @property
    def method_names(self) -> set[str]:
        """The names of the methods."""
        return self._program.method_names

    def load_method(self, name: str) -> Method:
        """Load a method with memory of its own."""
        return Method(self._program.load_method(name))

    def metadata(self, method_name: str) -> MethodMeta:
        """Return what the file says of a method that need not be loaded."""
        return self._program.method_meta(method_name)

    def __getattr__(self, name: str) -> NoReturn:
        if "etdump" in name:
            raise absent("devtools.etdump")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def load_program(
    data: Any,
    data_path: Any = None,
    enable_etdump: bool = False,
    verification: Any = Verification.InternalConsistency,
) -> etx_runtime.Program:
    """Load a program with the weights of `data_path`, one `.ptd` file or several."""
    if enable_etdump:
        raise absent("devtools.etdump")
    paths = data_path if isinstance(data_path, (list, tuple)) else [data_path]
    return etx_runtime.Runtime.get().load_program(
        data,
        verification=verification,
        data_paths=[path for path in paths if path is not None],
    )


class Runtime:
    """The way in: ``Runtime.get().load_program("model.pte")``."""

    _instance: Runtime | None = None

    def __init__(self) -> None:
        runtime = etx_runtime.Runtime.get()
        self.backend_registry = runtime.backend_registry
        self.operator_registry = runtime.operator_registry

    @classmethod
    def get(cls) -> Runtime:
        """Return the runtime of this process."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def load_program(
        self,
        data: Any,
        *,
        verification: Verification = Verification.InternalConsistency,
        enable_etdump: bool = False,
        debug_buffer_size: int = 0,
        data_path: Any = None,
    ) -> Program:
        """Load a program from a path, from bytes or from a binary file object."""
        return Program(load_program(data, data_path, enable_etdump, verification))
