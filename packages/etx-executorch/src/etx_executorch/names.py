# SPDX-License-Identifier: BSD-3-Clause
"""ExecuTorch's modules and where their names are in ETX: `module:attribute`, `*` for the rest."""

from __future__ import annotations

__all__ = ["MOVED", "NAMES"]

_BUNDLES = "etx_devtools"
_CONFIG = "etx_executorch.adapters.config"
_CORD = "etx_executorch.adapters.cord"
_ETRECORD = "etx_executorch.adapters.etrecord"
_EXPORT_PASS = "etx_executorch.adapters.export_pass"
_EXPORT_UTIL = "etx_executorch.adapters.export_util"
_GRAPHS = "etx_executorch.adapters.graphs"
_INSPECTOR = "etx_devtools.inspector"
_MANAGERS = "etx_executorch.adapters.managers"
_MEMORY_PLANNING = "etx_executorch.adapters.memory_planning"
_NAMED_DATA = "etx_executorch.adapters.named_data"
_OPERATORS = "etx_executorch.adapters.operators"
_OUT_VARIANTS = "etx_executorch.adapters.out_variants"
_PARTITIONS = "etx_executorch.adapters.partitions"
_PLANNING = "etx_executorch.adapters.planning"
_PORTABLE = "etx_executorch.adapters.portable_lib"
_PRINTING = "etx_executorch.adapters.printing"
_REINPLACE = "etx_executorch.adapters.reinplace"
_RECIPES = "etx_executorch.adapters.recipes"
_RUNTIME = "etx_executorch.adapters.runtime"
_SESSIONS = "etx_executorch.adapters.sessions"
_SPECS = "etx_executorch.adapters.specs"
_TRANSFORMS = "etx_executorch.adapters.transforms"
_SERIALIZE = "etx_executorch.adapters.serialize"
_XNNPACK_RECIPES = "etx_executorch.adapters.xnnpack_recipes"
_PARTITIONERS = "etx_exir.partitioners"
_ARM = "etx_backend_arm"
_ETHOS_U = "etx_backend_arm.ethos_u.backend"
_CORTEX_M = "etx_executorch.adapters.cortex_m"


def _of(module: str, *names: str) -> dict[str, str]:
    return {name: f"{module}:{name}" for name in names}


_PROGRAM = _of(
    _MANAGERS,
    "EdgeProgramManager",
    "ExecutorchProgramManager",
    "to_edge",
    "to_edge_transform_and_lower",
)
_OPTIONS = _of(_CONFIG, "EdgeCompileConfig", "ExecutorchBackendConfig")
_PASSES = _of(
    _EXPORT_PASS,
    "ExportPass",
    "ExportPassBaseError",
    "ExportedProgramPassBase",
    "ExportedProgramPassResult",
    "NodeMetadata",
    "ProxyValue",
    "map_args",
)
_PASS_RESULT = "torch.fx.passes.infra.pass_base:PassResult"
_PYTREE = "torch.utils._pytree"

EXIR = {
    "exir": {
        **_PROGRAM,
        **_OPTIONS,
        **_of("torch.export", "ExportedProgram", "save", "load"),
        **_of(_MANAGERS, "emit_program", "EmitterOutput"),
        **_of("torch.export.graph_signature", "ExportGraphSignature"),
        "Value": "typing:Any",
    },
    "exir.program": _PROGRAM,
    "exir.program._program": {**_PROGRAM, "_transform": f"{_TRANSFORMS}:transform"},
    "exir.capture": _OPTIONS,
    "exir.capture._capture": _of(_TRANSFORMS, "patch_forward"),
    "exir.capture._config": _OPTIONS,
    "exir.delegate": _of("etx_exir", "executorch_call_delegate"),
    "exir.dialects": {},
    "exir.dialects._ops": _of(_OPERATORS, "ops", "bind_pattern_to_op"),
    "exir.dialects.edge": {},
    "exir.dialects.edge._ops": {
        **_of(_OPERATORS, "EdgeOpOverload"),
        "EdgeOpOverloadPacket": f"{_OPERATORS}:OverloadPacket",
    },
    "exir.dialects.backend": {},
    "exir.dialects.backend._ops": _of(_OPERATORS, "BackendOpOverload"),
    "exir.dynamic_shape": _of(_CONFIG, "DynamicMemoryPlanningMode"),
    "exir.emit": _of(_MANAGERS, "emit_program", "EmitterOutput"),
    "exir.emit._emit_program": _of(_MANAGERS, "emit_program", "EmitterOutput"),
    "exir.error": {
        "ExportError": "etx_schema:EtxError",
        "InternalError": "etx_schema:EtxError",
    },
    "exir.graph_module": _of(
        _GRAPHS,
        "bfs_trace_with_node_process",
        "contains_any_call_fn_target_op",
        "get_cond_while_submodules",
        "get_control_flow_submodules",
        "get_scan_submodules",
    ),
    "exir.lowered_backend_module": {
        **_of("etx_exir", "LoweredBackendModule"),
        **_of(_GRAPHS, "get_lowered_backend_modules", "get_lowered_submodules"),
        **_of(_TRANSFORMS, "arrange_graph_outputs", "create_submodule_from_nodes"),
    },
    "exir.memory": _of(_OUT_VARIANTS, "alloc"),
    "exir.memory_planning": {
        **_of(
            _PLANNING,
            "MemoryAlgoResult",
            "MemoryPlanningAlgorithmSuite",
            "SpecAllocResult",
            "greedy",
            "naive",
        ),
        **_of(
            _MEMORY_PLANNING,
            "Verifier",
            "apply_algo",
            "collect_specs_from_nodes",
            "filter_nodes",
            "get_graph_input_tensors",
            "get_graph_output_tensors",
            "get_node_tensor_specs",
            "update_all_tensors_lifetime",
        ),
        "_is_inplace_node": f"{_REINPLACE}:is_inplace_node",
        "_do_user_inputs_exist": f"{_MEMORY_PLANNING}:do_user_inputs_exist",
        "_extend_storage_base_lifetimes": f"{_PLANNING}:extend_lifetimes",
    },
    "exir.pass_base": {
        **_PASSES,
        "PassResult": _PASS_RESULT,
        "PassBase": "torch.fx.passes.infra.pass_base:PassBase",
        **dict.fromkeys(("Argument", "Fn", "PassType", "Value"), "typing:Any"),
    },
    "exir.pass_manager": {
        **_of(_EXPORT_PASS, "PassManager"),
        "PassType": "typing:Any",
    },
    "exir.passes": {
        **_of(_MEMORY_PLANNING, "MemoryPlanningPass"),
        **_of(_OUT_VARIANTS, "ToOutVarPass"),
        **_of(_SPECS, "DebugPass", "SpecPropPass"),
        **_of(_EXPORT_PASS, "ExportPass"),
        **_of("etx_exir", "executorch_call_delegate"),
        **_of(_TRANSFORMS, "dead_code_elimination_pass"),
        "PassResult": _PASS_RESULT,
        "HintBasedSymShapeEvalPass": "etx_executorch.adapters.config:HintBasedSymShapeEvalPass",
    },
    "exir.passes.constant_prop_pass": _of(_TRANSFORMS, "constant_prop_pass"),
    "exir.passes.external_constants_pass": _of(
        _TRANSFORMS, "delegate_external_constants_pass_unlifted"
    ),
    "exir.passes.init_mutable_pass": _of(_CONFIG, "InitializedMutableBufferPass"),
    "exir.passes.memory_planning_pass": _of(_MEMORY_PLANNING, "MemoryPlanningPass"),
    "exir.passes.reinplace": _of(_REINPLACE, "DEFAULT_INPLACEABLE_OPS", "reinplace_pass"),
    "exir.passes.spec_prop_pass": _of(_SPECS, "SpecPropPass", "make_spec"),
    "exir.passes.sym_shape_eval_pass": _of(
        _CONFIG, "ConstraintBasedSymShapeEvalPass", "HintBasedSymShapeEvalPass"
    ),
    "exir.print_program": _of(
        _PRINTING,
        "add_cursor_to_graph",
        "inspect_node",
        "pretty_print",
        "pretty_print_stacktraces",
        "print_program",
    ),
    "exir.banked_memory_planning": _of("etx_exir", "Bank", "TargetMemoryMap"),
    "exir.scalar_type": _of("etx_schema", "ScalarType"),
    "exir.schema": {"*": "etx_schema"},
    "exir.tensor": _of(_SPECS, "TensorSpec"),
    "exir.tensor_layout": _of("etx_schema", "TensorLayout"),
    "exir.tracer": {
        "Value": "typing:Any",
        "_default_decomposition_table": f"{_TRANSFORMS}:default_decomposition_table",
    },
    "exir.verification": {},
    "exir.verification.verifier": _of(_TRANSFORMS, "EXIREdgeDialectVerifier"),
}

BACKEND = {
    "exir.backend": {},
    "exir.backend.backend_api": {
        **_of(_PARTITIONS, "MethodProgramsPartitionerSpec", "to_backend"),
        **_of("etx_exir", "LoweredBackendModule"),
    },
    "exir.backend.backend_details": {
        **_of("etx_exir", "BackendDetails", "CompileSpec"),
        **_of(_NAMED_DATA, "PreprocessResult"),
        **_of("torch.export", "ExportedProgram"),
    },
    "exir.backend.canonical_partitioners": {},
    "exir.backend.canonical_partitioners.all_node_partitioner": _of(
        _PARTITIONERS, "AllNodePartitioner"
    ),
    "exir.backend.canonical_partitioners.duplicate_constant_node_pass": _of(
        _PARTITIONS, "duplicate_constant_node"
    ),
    "exir.backend.canonical_partitioners.group_partitioner": _of(
        _PARTITIONS, "GroupBasedPartitioner"
    ),
    "exir.backend.canonical_partitioners.pattern_op_partitioner": _of(
        _PARTITIONS,
        "generate_grouped_partitions_from_list_of_nodes",
        "generate_partitions_from_list_of_nodes",
        "generate_pattern_op_partitions",
    ),
    "exir.backend.compile_spec_schema": _of("etx_exir", "CompileSpec"),
    "exir.backend.operator_support": _of(_PARTITIONS, "DontPartition", "DontPartitionName"),
    "exir.backend.partitioner": _of("etx_exir", "DelegationSpec", "PartitionResult", "Partitioner"),
    "exir.backend.utils": {
        **_of("etx_exir", "DelegateMappingBuilder"),
        **_of(_PARTITIONERS, "tag_constant_data", "tag_mutated_buffer"),
        **_of(
            _GRAPHS,
            "format_delegated_graph",
            "get_delegated_payload",
            "get_delegates",
            "get_non_lowered_nodes",
            "is_identical_graph",
            "is_shape_dynamic",
            "print_delegated_graph",
        ),
    },
}

SERIALIZE = {
    "exir._serialize": {
        "_PTEFile": f"{_SERIALIZE}:PTEFile",
        "_serialize_pte_binary": f"{_SERIALIZE}:serialize_pte_binary",
        "_deserialize_pte_binary": f"{_SERIALIZE}:deserialize_pte_binary",
    },
    "exir._serialize._cord": {**_of(_CORD, "Cord"), **_of(_NAMED_DATA, "FileBackedData")},
    "exir._serialize._serialize": _of(_CORD, "serialize_for_executorch"),
    "exir._serialize._flatbuffer_program": {
        "_flatbuffer_to_program": f"{_SERIALIZE}:flatbuffer_to_program",
        "_program_to_flatbuffer": f"{_SERIALIZE}:program_to_flatbuffer",
    },
    "exir._serialize._named_data_store": _of(_NAMED_DATA, "NamedDataStore", "NamedDataStoreOutput"),
    "exir._serialize._program": {
        **_of(_SERIALIZE, "PTEFile", "deserialize_pte_binary", "serialize_pte_binary"),
        "_ExtendedHeader": f"{_SERIALIZE}:ExtendedHeader",
        "_program_to_json": f"{_SERIALIZE}:program_to_json",
        "_get_extended_header": f"{_SERIALIZE}:extended_header",
    },
    "exir._serialize.data_serializer": {
        **_of(_NAMED_DATA, "DataEntry"),
        **_of(_CORD, "DataPayload", "DataSerializer"),
    },
    "exir._serialize.padding": {"aligned_size": "etx_schema.segments:align"},
}

RUNTIME = {
    "runtime": {
        **_of("etx_runtime", "BackendRegistry", "MethodMeta", "OperatorRegistry", "Verification"),
        **_of(_RUNTIME, "Method", "Program", "Runtime"),
    },
    "extension": {},
    "extension.export_util": _of(
        _EXPORT_UTIL, "export_to_edge", "export_to_exec_prog", "save_pte_program"
    ),
    "extension.export_util.utils": _of(
        _EXPORT_UTIL, "export_to_edge", "export_to_exec_prog", "save_pte_program"
    ),
    "extension.flat_tensor": {},
    "extension.flat_tensor.serialize": {},
    "extension.flat_tensor.serialize.serialize": {
        "_deserialize_to_flat_tensor": "etx_schema:read_ptd"
    },
    "extension.pybindings": {},
    "extension.pybindings.portable_lib": {
        **_of(_PORTABLE, "BundledModule", "ExecuTorchModule"),
        "_load_bundled_program_from_buffer": f"{_PORTABLE}:load_bundled_program_from_buffer",
        "_load_for_executorch_from_bundled_program": (
            f"{_PORTABLE}:load_for_executorch_from_bundled_program"
        ),
        **_of("etx_runtime", "MethodMeta", "TensorInfo", "Verification"),
        "_load_for_executorch": f"{_PORTABLE}:load_for_executorch",
        "_load_for_executorch_from_buffer": f"{_PORTABLE}:load_for_executorch_from_buffer",
        "_get_operator_names": f"{_PORTABLE}:get_operator_names",
        "_get_registered_backend_names": f"{_PORTABLE}:get_registered_backend_names",
        "_is_available": f"{_PORTABLE}:is_available",
        "_threadpool_get_thread_count": f"{_PORTABLE}:get_thread_count",
        "_unsafe_reset_threadpool": f"{_PORTABLE}:reset_threadpool",
    },
    "extension.pytree": {
        **_of(_PYTREE, "TreeSpec", "tree_flatten", "tree_map", "tree_unflatten"),
        "register_custom": f"{_PYTREE}:register_pytree_node",
    },
}

DEVTOOLS = {
    "devtools": {
        **_of(_BUNDLES, "BundledProgram"),
        **_of(_INSPECTOR, "Inspector"),
        **_of(_ETRECORD, "ETRecord", "generate_etrecord", "parse_etrecord"),
    },
    "devtools.etrecord": _of(_ETRECORD, "ETRecord", "generate_etrecord", "parse_etrecord"),
    "devtools.bundled_program": {},
    "devtools.bundled_program.config": _of(_BUNDLES, "MethodTestCase", "MethodTestSuite"),
    "devtools.bundled_program.core": _of(_BUNDLES, "BundledProgram"),
    "devtools.bundled_program.serialize": _of(
        "etx_executorch.adapters.bundles",
        "deserialize_from_flatbuffer_to_bundled_program",
        "serialize_from_bundled_program_to_flatbuffer",
    ),
    "devtools.backend_debug": {
        **_of(_GRAPHS, "get_delegation_info"),
        **_of("etx_exir.delegation.info", "DelegationBreakdown", "print_delegation_info"),
    },
    "devtools.backend_debug.delegation_info": {
        **_of(_GRAPHS, "DelegationInfo", "get_delegation_info"),
        **_of("etx_exir.delegation.info", "DelegationBreakdown"),
    },
    "devtools.inspector": _of(
        _INSPECTOR, "Event", "EventBlock", "Inspector", "PerfData", "TimeScale"
    ),
    "devtools.size_analysis_tool": {},
}

_RECIPE = _of(
    _RECIPES,
    "AOQuantizationConfig",
    "ExportRecipe",
    "LoweringRecipe",
    "Mode",
    "QuantizationRecipe",
    "RecipeType",
)
_SESSION = _of(_SESSIONS, "ExportSession", "export")

EXPORT = {
    "export": {
        **{name: place for name, place in _RECIPE.items() if name != "Mode"},
        **_SESSION,
        **_of(_RECIPES, "BackendRecipeProvider", "StageType", "recipe_registry"),
    },
    "export.recipe": _RECIPE,
    "export.recipe_provider": _of(_RECIPES, "BackendRecipeProvider"),
    "export.stages": _of(_SESSIONS, "PipelineArtifact"),
    "export.types": _of(_RECIPES, "StageType"),
    "backends.xnnpack.recipes": _of(_XNNPACK_RECIPES, "XNNPACKRecipeProvider", "XNNPackRecipeType"),
    "backends.xnnpack.recipes.xnnpack_recipe_provider": _of(
        _XNNPACK_RECIPES, "XNNPACKRecipeProvider"
    ),
    "backends.xnnpack.recipes.xnnpack_recipe_types": _of(_XNNPACK_RECIPES, "XNNPackRecipeType"),
}

QUANTIZATION = {
    "backends.xnnpack.quantizer": {},
    "backends.xnnpack.quantizer.xnnpack_quantizer": _of(
        "etx_quant",
        "QuantizationConfig",
        "XNNPACKQuantizer",
        "get_symmetric_quantization_config",
    ),
    "backends.xnnpack.quantizer.xnnpack_quantizer_utils": _of("etx_quant", "QuantizationConfig"),
}

BACKENDS = {
    "backends.xnnpack.partition": {},
    "backends.xnnpack.partition.xnnpack_partitioner": _of(
        "etx_backend_xnnpack.partition",
        "XnnpackDynamicallyQuantizedPartitioner",
        "XnnpackFloatingPointPartitioner",
        "XnnpackPartitioner",
        "XnnpackQuantizedPartitioner",
    ),
    "backends.arm.ethosu": {
        **_of(_ETHOS_U, "EthosUBackend", "EthosUPartitioner"),
        **_of(f"{_ARM}.ethos_u.compile_spec", "EthosUCompileSpec"),
    },
    "backends.arm.quantizer": {
        **_of(_ETHOS_U, "EthosUQuantizer"),
        **_of(
            f"{_ARM}.quantizer",
            "TOSAQuantizer",
            "get_symmetric_a16w8_quantization_config",
        ),
        **_of("etx_quant", "QuantizationConfig", "get_symmetric_quantization_config"),
    },
    "backends.arm.quantizer.arm_quantizer": _of(
        f"{_ARM}.quantizer",
        "get_symmetric_a8w4_quantization_config",
        "get_symmetric_a16w8_quantization_config",
    ),
    "backends.arm.tosa.compile_spec": _of(f"{_ARM}.compile_spec", "TosaCompileSpec"),
    "backends.arm.tosa.partitioner": _of(f"{_ARM}.partition", "TOSAPartitioner"),
    "backends.cortex_m.edge_compile_config": _of(_CORTEX_M, "cortex_m_edge_compile_config"),
    "backends.cortex_m.passes": _of(_CORTEX_M, "CortexMPassManager"),
    "backends.cortex_m.passes.cortex_m_pass_manager": _of(_CORTEX_M, "CortexMPassManager"),
    "backends.cortex_m.quantizer.quantizer": _of(_CORTEX_M, "CortexMQuantizer"),
    "backends.cortex_m.target_config": _of(f"{_ARM}.cortex_m", "CortexM", "CortexMTargetConfig"),
}

# Folders whose modules say what to use instead.
FOLDERS: dict[str, dict[str, str]] = {
    "backends": {},
    "backends.arm": {},
    "backends.arm.tosa": {},
    "backends.cortex_m": {},
    "backends.cortex_m.quantizer": {},
    "backends.xnnpack": {},
}

# Where ExecuTorch had a name before 1.5.1, and tutorials still look for it.
MOVED = {"exir.backend.utils": _of(_GRAPHS, "get_delegation_info")}

NAMES: dict[str, dict[str, str]] = {
    **EXIR,
    **BACKEND,
    **SERIALIZE,
    **RUNTIME,
    **DEVTOOLS,
    **EXPORT,
    **QUANTIZATION,
    **BACKENDS,
    **FOLDERS,
}
for _module, _rows in MOVED.items():
    NAMES[_module] = NAMES[_module] | _rows
