# SPDX-License-Identifier: BSD-3-Clause
"""The older binding, `extension.pybindings.portable_lib`, over ETX's runtime."""

from __future__ import annotations

from typing import Any

import etx_runtime
from etx_runtime import MethodMeta, Verification
from torch.utils import _pytree as pytree

from etx_executorch.adapters.runtime import load_program, run

__all__ = [
    "ExecuTorchModule",
    "get_operator_names",
    "get_registered_backend_names",
    "get_thread_count",
    "is_available",
    "load_for_executorch",
    "reset_threadpool",
]


class ExecuTorchModule:
    """A program whose methods are loaded when they are first run."""

    def __init__(self, program: etx_runtime.Program) -> None:
        self._program = program
        self._methods: dict[str, etx_runtime.Method] = {}

    def run_method(self, method_name: str, inputs: Any = (), clone_outputs: bool = True) -> Any:
        """Run a method on its inputs and return its outputs, which are always copies."""
        if method_name not in self._methods:
            self._methods[method_name] = self._program.load_method(method_name)
        return run(self._methods[method_name], inputs)

    def forward(self, inputs: Any = (), clone_outputs: bool = True) -> Any:
        """Run `forward`; `inputs` are a sequence, or one tensor."""
        return self.run_method("forward", pytree.tree_leaves(inputs), clone_outputs)

    __call__ = forward

    def __getitem__(self, name: str) -> Any:
        return lambda inputs=(): self.run_method(name, inputs)

    def plan_execute(self, method_name: str, clone_outputs: bool = True) -> Any:
        """Run a method that takes no inputs."""
        return self.run_method(method_name, (), clone_outputs)

    def method_meta(self, method_name: str) -> MethodMeta:
        """Return what the file says of a method."""
        return self._program.method_meta(method_name)

    def method_names(self) -> list[str]:
        """Return the names of the methods."""
        return sorted(self._program.method_names)

    def has_etdump(self) -> bool:
        """Tell that no ETDump is written."""
        return False


def load_for_executorch(
    data: Any,
    data_path: Any = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Any = Verification.InternalConsistency,
) -> ExecuTorchModule:
    """Load a program from a path or from bytes."""
    return ExecuTorchModule(load_program(data, data_path, enable_etdump, program_verification))


def get_operator_names() -> list[str]:
    """Return the names of the operators that have kernels."""
    return sorted(etx_runtime.Runtime.get().operator_registry.operator_names)


def get_registered_backend_names() -> list[str]:
    """Return the names of the backends."""
    return etx_runtime.Runtime.get().backend_registry.registered_backend_names


def is_available(backend_name: str) -> bool:
    """Tell whether a backend works on this machine."""
    return etx_runtime.Runtime.get().backend_registry.is_available(backend_name)


def get_thread_count() -> int:
    """Return how many threads kernels use."""
    return etx_runtime.get_num_threads()


def reset_threadpool(num_threads: int) -> bool:
    """Set how many threads kernels use."""
    etx_runtime.set_num_threads(num_threads)
    return True
