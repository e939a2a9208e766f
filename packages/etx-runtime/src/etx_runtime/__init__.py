# SPDX-License-Identifier: BSD-3-Clause
"""Run ``.pte`` programs: no torch, NumPy or DLPack in, NumPy out."""

from etx_runtime._native import ABI_VERSION
from etx_runtime._version import __version__
from etx_runtime.callbacks import (
    Backend,
    CompileSpecs,
    register_backend,
    register_kernel,
    ticks,
    trace_event,
    unregister,
)
from etx_runtime.errors import (
    ExecutionError,
    InputError,
    LoadError,
    MetadataError,
    PluginError,
    RuntimeFailure,
)
from etx_runtime.foreign import ForeignArray
from etx_runtime.log import set_log_level, set_log_sink
from etx_runtime.model import Model, load
from etx_runtime.pytree import register_container
from etx_runtime.recorder import Recorder
from etx_runtime.runtime import (
    BackendRegistry,
    Method,
    MethodMeta,
    OperatorRegistry,
    Program,
    Runtime,
    TensorInfo,
    Verification,
)
from etx_runtime.threads import get_num_threads, set_num_threads
from etx_runtime.values import RequiredBytes, ValueInfo

abi_version = ABI_VERSION

__all__ = [
    "Backend",
    "BackendRegistry",
    "CompileSpecs",
    "ExecutionError",
    "ForeignArray",
    "InputError",
    "LoadError",
    "MetadataError",
    "Method",
    "MethodMeta",
    "Model",
    "OperatorRegistry",
    "PluginError",
    "Program",
    "Recorder",
    "RequiredBytes",
    "Runtime",
    "RuntimeFailure",
    "TensorInfo",
    "ValueInfo",
    "Verification",
    "__version__",
    "abi_version",
    "get_num_threads",
    "load",
    "register_backend",
    "register_container",
    "register_kernel",
    "set_log_level",
    "set_log_sink",
    "set_num_threads",
    "ticks",
    "trace_event",
    "unregister",
]
