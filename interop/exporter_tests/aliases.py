# SPDX-License-Identifier: BSD-3-Clause
"""Lets `executorch.…` be imported as ETX; its tests come from the folder of its wheel.

Only a table of names: what has no counterpart becomes a class that says so as soon as it is used.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ALIASES: dict[str, dict[str, str]] = {
    "executorch.exir": {
        "EdgeCompileConfig": "shims:edge_compile_config",
        "EdgeProgramManager": "etx_exir:EdgeProgramManager",
        "ExecutorchBackendConfig": "shims:executorch_backend_config",
        "ExecutorchProgramManager": "etx_exir:ExecutorchProgramManager",
        "to_edge": "etx_exir:to_edge",
        "to_edge_transform_and_lower": "etx_exir:to_edge_transform_and_lower",
    },
    "executorch.exir._serialize": {
        "_PTEFile": "shims_serialize:PTEFile",
        "_serialize_pte_binary": "shims_serialize:serialize_pte_binary",
    },
    "executorch.exir._serialize._flatbuffer_program": {
        "_flatbuffer_to_program": "shims_serialize:flatbuffer_to_program",
        "_program_to_flatbuffer": "shims_serialize:program_to_flatbuffer",
    },
    "executorch.exir._serialize._named_data_store": {
        "NamedDataStore": "shims_serialize:NamedDataStore",
        "NamedDataStoreOutput": "shims_serialize:NamedDataStoreOutput",
    },
    "executorch.exir._serialize._program": {
        "PTEFile": "shims_serialize:PTEFile",
        "_ExtendedHeader": "shims_serialize:ExtendedHeader",
        "_program_to_json": "shims_serialize:program_to_json",
        "_get_extended_header": "shims_serialize:extended_header",
        "deserialize_pte_binary": "shims_serialize:deserialize_pte_binary",
        "serialize_pte_binary": "shims_serialize:serialize_pte_binary",
    },
    "executorch.exir._serialize.data_serializer": {"DataEntry": "shims_serialize:DataEntry"},
    "executorch.exir._serialize.padding": {"aligned_size": "etx_schema.segments:align"},
    "executorch.exir.backend.backend_api": {
        "LoweredBackendModule": "etx_exir:LoweredBackendModule",
        "MethodProgramsPartitionerSpec": "shims:MethodProgramsPartitionerSpec",
        "to_backend": "shims:to_backend",
    },
    "executorch.exir.backend.backend_details": {
        "BackendDetails": "etx_exir:BackendDetails",
        "CompileSpec": "etx_exir:CompileSpec",
        "ExportedProgram": "torch.export:ExportedProgram",
        "PreprocessResult": "etx_exir:PreprocessResult",
    },
    "executorch.exir.backend.canonical_partitioners.all_node_partitioner": {
        "AllNodePartitioner": "etx_exir.partitioners:AllNodePartitioner",
    },
    "executorch.exir.backend.canonical_partitioners.duplicate_constant_node_pass": {
        "duplicate_constant_node": "etx_exir.partitioners:duplicate_constant_node",
    },
    "executorch.exir.backend.canonical_partitioners.group_partitioner": {
        "GroupBasedPartitioner": "etx_exir.partitioners:GroupBasedPartitioner",
    },
    "executorch.exir.backend.canonical_partitioners.pattern_op_partitioner": {
        "generate_partitions_from_list_of_nodes": (
            "etx_exir.partitioners:generate_partitions_from_list_of_nodes"
        ),
        "generate_pattern_op_partitions": "shims:generate_pattern_op_partitions",
    },
    "executorch.exir.backend.compile_spec_schema": {"CompileSpec": "etx_exir:CompileSpec"},
    "executorch.exir.backend.partitioner": {
        "DelegationSpec": "etx_exir:DelegationSpec",
        "PartitionResult": "etx_exir:PartitionResult",
        "Partitioner": "etx_exir:Partitioner",
    },
    "executorch.exir.backend.utils": {
        "DelegateMappingBuilder": "etx_exir:DelegateMappingBuilder",
        "WhyNoPartition": "etx_exir.partitioners:WhyNoPartition",
        "tag_constant_data": "etx_exir.partitioners:tag_constant_data",
        "tag_mutated_buffer": "etx_exir.partitioners:tag_mutated_buffer",
        "get_delegates": "shims:get_delegates",
        "get_non_lowered_nodes": "shims:get_non_lowered_nodes",
    },
    "executorch.exir.capture._config": {
        "ExecutorchBackendConfig": "shims:executorch_backend_config",
    },
    "executorch.exir.delegate": {
        "executorch_call_delegate": "etx_exir:executorch_call_delegate",
    },
    "executorch.exir.dialects._ops": {"bind_pattern_to_op": "shims:bind", "ops": "shims:ops"},
    "executorch.exir.emit": {"emit_program": "shims:emit_program"},
    "executorch.exir.error": {
        "ExportError": "etx_schema:EtxError",
        "InternalError": "etx_schema:EtxError",
    },
    "executorch.exir.graph_module": {
        "get_control_flow_submodules": "shims:get_control_flow_submodules",
    },
    "executorch.exir.lowered_backend_module": {
        "LoweredBackendModule": "etx_exir:LoweredBackendModule",
        "get_lowered_backend_modules": "shims:get_lowered_backend_modules",
        "get_lowered_submodules": "shims:get_lowered_submodules",
    },
    "executorch.exir.memory_planning": {
        "MemoryPlanningAlgorithmSuite": "etx_exir.plan:MemoryPlanningAlgorithmSuite",
        "greedy": "etx_exir.plan:greedy",
        "naive": "etx_exir.plan:naive",
    },
    "executorch.exir.pass_base": {"PassResult": "torch.fx.passes.infra.pass_base:PassResult"},
    "executorch.exir.passes": {"MemoryPlanningPass": "etx_exir:MemoryPlanningPass"},
    "executorch.exir.passes.init_mutable_pass": {
        "InitializedMutableBufferPass": "shims:InitializedMutableBufferPass",
    },
    "executorch.exir.passes.sym_shape_eval_pass": {
        "ConstraintBasedSymShapeEvalPass": "shims:ConstraintBasedSymShapeEvalPass",
    },
    "executorch.exir.print_program": {
        "pretty_print": "shims:ignore",
        "print_program": "shims:ignore",
    },
    "executorch.exir.program._program": {
        "EdgeProgramManager": "etx_exir:EdgeProgramManager",
        "ExecutorchProgramManager": "etx_exir:ExecutorchProgramManager",
        "to_edge": "etx_exir:to_edge",
        "to_edge_transform_and_lower": "etx_exir:to_edge_transform_and_lower",
    },
    "executorch.exir.schema": {"*": "etx_schema", "KernelTypes": "shims:KernelTypes"},
    "executorch.exir.scalar_type": {"ScalarType": "etx_schema:ScalarType"},
    "executorch.exir.tensor_layout": {"TensorLayout": "etx_schema:TensorLayout"},
    "executorch.extension.pybindings.portable_lib": {
        "_load_for_executorch_from_buffer": "shims:load_for_executorch_from_buffer",
    },
    "executorch.extension.pytree": {"tree_flatten": "torch.utils._pytree:tree_flatten"},
    "executorch.runtime": {"Runtime": "shims:Runtime"},
}
TESTS = ("test", "tests")


class NotThereError(AttributeError):
    """Something of ExecuTorch that ETX does not have was used."""


class _Absent(type):
    """The type of a name without a counterpart: to be called or looked into is an error."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotThereError(f"ETX has no counterpart of {cls.__module__}.{cls.__qualname__}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotThereError(f"ETX has no counterpart of {cls.__module__}.{cls.__qualname__}")


class _Alias(ModuleType):
    """A module whose names are looked up in the table."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _resolve(self.__name__, name)
        setattr(self, name, value)
        return value


def _resolve(module: str, name: str) -> Any:
    if _is_module(f"{module}.{name}"):
        return importlib.import_module(f"{module}.{name}")
    table = ALIASES.get(module, {})
    place = table.get(name) or (f"{table['*']}:{name}" if "*" in table else "")
    source, _, attribute = place.partition(":")
    if source:
        try:
            return getattr(importlib.import_module(source), attribute)
        except (ImportError, AttributeError):
            pass
    return _Absent(name, (), {"__module__": module})


def _is_module(name: str) -> bool:
    """Tell whether the table, or a file of tests, is that module or lies in it."""
    return any(key == name or key.startswith(f"{name}.") for key in ALIASES)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `executorch` and all in it: tests in the wheel's folder, the rest in the table."""

    def __init__(self, wheel: Path) -> None:
        self.wheel = wheel

    def find_spec(self, name: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        """Find tests and their material as files of the wheel."""
        parts = name.split(".")
        if parts[0] != "executorch":
            return None
        path = self.wheel.joinpath(*parts)
        if any(part in TESTS for part in parts) and path.with_suffix(".py").is_file():
            return importlib.util.spec_from_file_location(name, path.with_suffix(".py"))
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Make a module of the table."""
        return _Alias(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leave it empty: names are looked up when they are asked for."""


def install(wheel: Path) -> None:
    """Let `executorch` mean ETX, with the tests of the wheel that lies in the folder `wheel`."""
    if not (wheel / "executorch" / "exir").is_dir():
        raise SystemExit(f"{wheel} holds no executorch/exir; give the site-packages of its wheel")
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    sys.meta_path.insert(0, Finder(wheel))
