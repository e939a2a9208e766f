# SPDX-License-Identifier: BSD-3-Clause
"""ETX's runtime with torch tensors in and out, as `executorch.runtime` has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import etx_runtime
import numpy as np
import torch
from etx_runtime import MethodMeta, Verification
from torch.utils import _pytree as pytree
from torch.utils.dlpack import from_dlpack

__all__ = ["Method", "Program", "Runtime", "load_program", "recorder_of", "run", "write_etdump"]


def run(
    method: etx_runtime.Method, inputs: Any, recorder: etx_runtime.Recorder | None = None
) -> list[Any]:
    """Execute a method on its inputs, flat or nested, and return its flat outputs."""
    leaves = [x.detach() if isinstance(x, torch.Tensor) else x for x in pytree.tree_leaves(inputs)]
    found = method.execute(leaves) if recorder is None else method.trace(leaves, recorder)
    return [_tensor(value) for value in found]


def recorder_of(enable_etdump: bool, debug_buffer_size: int) -> etx_runtime.Recorder | None:
    """Return what records where an ETDump was asked for; with a debug buffer, values too.

    Its size need not be guessed: it grows with what is written.
    """
    if not enable_etdump:
        return None
    return etx_runtime.Recorder("all" if debug_buffer_size > 0 else "none")


def write_etdump(
    recorder: etx_runtime.Recorder | None, path: Any, debug_buffer_path: Any = None
) -> None:
    """Write what was recorded, and the values beside it. Errors: RuntimeError where nothing was."""
    if recorder is None:
        raise RuntimeError("nothing was recorded: load the program with enable_etdump=True")
    recorder.save(path, debug_buffer_path or None)


def _tensor(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    return from_dlpack(value) if hasattr(value, "__dlpack__") else value


class Method:
    """A loaded method."""

    def __init__(
        self, method: etx_runtime.Method, recorder: etx_runtime.Recorder | None = None
    ) -> None:
        self._method, self._recorder = method, recorder

    def execute(self, inputs: Sequence[Any] = ()) -> list[Any]:
        """Run it on its inputs and return its outputs, tensors as those of torch."""
        return run(self._method, inputs, self._recorder)

    @property
    def metadata(self) -> MethodMeta:
        """What the file says of the method."""
        return self._method.metadata


class Program:
    """A verified program."""

    def __init__(
        self, program: etx_runtime.Program, recorder: etx_runtime.Recorder | None = None
    ) -> None:
        self._program, self._recorder = program, recorder

    @property
    def method_names(self) -> set[str]:
        """The names of the methods."""
        return self._program.method_names

    def load_method(self, name: str) -> Method:
        """Load a method with memory of its own."""
        method = self._program.load_method(name, recorder=self._recorder)
        return Method(method, self._recorder)

    def metadata(self, method_name: str) -> MethodMeta:
        """Return what the file says of a method that need not be loaded."""
        return self._program.method_meta(method_name)

    def write_etdump_result_to_file(self, etdump_path: Any, debug_buffer_path: Any = None) -> None:
        """Write what loads and executions were since the program was loaded."""
        write_etdump(self._recorder, etdump_path, debug_buffer_path)


def load_program(
    data: Any,
    data_path: Any = None,
    verification: Any = Verification.InternalConsistency,
) -> etx_runtime.Program:
    """Load a program with the weights of `data_path`, one `.ptd` file or several."""
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
        recorder = recorder_of(enable_etdump, debug_buffer_size)
        return Program(load_program(data, data_path, verification), recorder)
