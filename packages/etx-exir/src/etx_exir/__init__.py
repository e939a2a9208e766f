# SPDX-License-Identifier: BSD-3-Clause
"""The compiler of ETX: from `torch.export`'s programs to `.pte` files."""

from __future__ import annotations

from etx_exir._version import __version__
from etx_exir.config import EdgeCompileConfig, ExecutorchBackendConfig
from etx_exir.console import Console
from etx_exir.delegation.backend import (
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    PreprocessResult,
)
from etx_exir.delegation.info import DelegationInfo, get_delegation_info
from etx_exir.delegation.map import DelegateMappingBuilder
from etx_exir.delegation.partition import to_backend
from etx_exir.ir.data_store import NamedDataStore, NamedDataStoreOutput
from etx_exir.ir.delegate_call import LoweredBackendModule, executorch_call_delegate
from etx_exir.lower.capture import capture
from etx_exir.plan import Bank, MemoryPlanningPass, Pin, TargetMemoryMap
from etx_exir.program import (
    EdgeProgramManager,
    ExecutorchProgramManager,
    compile,
    to_edge,
    to_edge_transform_and_lower,
)

__all__ = [
    "BackendDetails",
    "Bank",
    "CompileSpec",
    "Console",
    "DelegateMappingBuilder",
    "DelegationInfo",
    "DelegationSpec",
    "EdgeCompileConfig",
    "EdgeProgramManager",
    "ExecutorchBackendConfig",
    "ExecutorchProgramManager",
    "LoweredBackendModule",
    "MemoryPlanningPass",
    "NamedDataStore",
    "NamedDataStoreOutput",
    "PartitionResult",
    "Partitioner",
    "Pin",
    "PreprocessResult",
    "TargetMemoryMap",
    "__version__",
    "capture",
    "compile",
    "executorch_call_delegate",
    "get_delegation_info",
    "to_backend",
    "to_edge",
    "to_edge_transform_and_lower",
]
