# SPDX-License-Identifier: BSD-3-Clause
"""The older binding, `extension.pybindings.portable_lib`, over ETX's runtime."""

from __future__ import annotations

from typing import Any

import etx_runtime
from etx_runtime import MethodMeta, Verification
from torch.utils import _pytree as pytree

from etx_executorch.adapters.runtime import load_program, recorder_of, run, write_etdump

__all__ = [
    "BundledModule",
    "ExecuTorchModule",
    "get_operator_names",
    "get_registered_backend_names",
    "get_thread_count",
    "is_available",
    "load_bundled_program_from_buffer",
    "load_for_executorch",
    "load_for_executorch_from_buffer",
    "load_for_executorch_from_bundled_program",
    "reset_threadpool",
]


class ExecuTorchModule:
    """A program whose methods are loaded when they are first run."""

    def __init__(
        self, program: etx_runtime.Program, recorder: etx_runtime.Recorder | None = None
    ) -> None:
        self._program, self._recorder = program, recorder
        self._methods: dict[str, etx_runtime.Method] = {}

    def run_method(self, method_name: str, inputs: Any = (), clone_outputs: bool = True) -> Any:
        """Run a method on its inputs and return its outputs, which are always copies."""
        if method_name not in self._methods:
            method = self._program.load_method(method_name, recorder=self._recorder)
            self._methods[method_name] = method
        return run(self._methods[method_name], inputs, self._recorder)

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

    def verify_result_with_bundled_expected_output(
        self,
        bundle: BundledModule,
        method_name: str,
        testset_idx: int,
        rtol: float = 1e-5,
        atol: float = 1e-8,
    ) -> list[Any]:
        """Run a test case of `bundle` and return its outputs; raise where one is not close."""
        verify = bundle.verify_result_with_bundled_expected_output
        return verify(method_name, testset_idx, rtol, atol)

    def has_etdump(self) -> bool:
        """Tell whether loads and executions are recorded."""
        return self._recorder is not None

    def write_etdump_result_to_file(self, path: Any, debug_buffer_path: Any = None) -> None:
        """Write what was recorded; with a debug buffer its values, too."""
        write_etdump(self._recorder, path, debug_buffer_path)


class BundledModule:
    """A program with its test cases, of which one is run and compared at a time."""

    def __init__(self, buffer: bytes) -> None:
        from etx_devtools.bundled_program import BundledProgram

        self.bundle = BundledProgram.load(buffer)

    def verify_result_with_bundled_expected_output(
        self, method_name: str, testset_idx: int, rtol: float = 1e-5, atol: float = 1e-8
    ) -> list[Any]:
        """Run a test case and return its outputs; raise RuntimeError where one is not close."""
        from etx_devtools.bundled_program.verify import Tolerance, chosen, runnable, verify

        module = load_for_executorch_from_bundled_program(self)
        tolerance = Tolerance(atol, rtol)
        rows = verify(self.bundle, method=method_name, case=testset_idx, tolerance=tolerance)
        wrong = [row for row in rows if not row.passed]
        if wrong:
            text = "; ".join(f"output {row.output}: {row.reason}" for row in wrong)
            raise RuntimeError(f"{method_name}, case {testset_idx}: {text}")
        ((_, _, case),) = chosen(self.bundle, method_name, testset_idx)
        inputs = [runnable(value) for value in case.inputs]
        outputs: list[Any] = module.run_method(method_name, inputs)
        return outputs


def load_bundled_program_from_buffer(
    buffer: bytes, non_const_pool_size: int = 16384
) -> BundledModule:
    """Load a bundled program from bytes."""
    return BundledModule(buffer)


def load_for_executorch_from_bundled_program(
    ptr: BundledModule,
    data_path: Any = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
) -> ExecuTorchModule:
    """Load the program of a bundled one."""
    return load_for_executorch(ptr.bundle.program, data_path, enable_etdump, debug_buffer_size)


def load_for_executorch(
    data: Any,
    data_path: Any = None,
    enable_etdump: bool = False,
    debug_buffer_size: int = 0,
    program_verification: Any = Verification.InternalConsistency,
) -> ExecuTorchModule:
    """Load a program from a path or from bytes."""
    recorder = recorder_of(enable_etdump, debug_buffer_size)
    return ExecuTorchModule(load_program(data, data_path, program_verification), recorder)


def load_for_executorch_from_buffer(
    data: bytes, data_map_buffer: bytes | None = None, *args: Any, **options: Any
) -> ExecuTorchModule:
    """Load a program from bytes, its outside weights from those of a `.ptd` file."""
    return load_for_executorch(data, data_map_buffer, *args, **options)


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
