# SPDX-License-Identifier: BSD-3-Clause
"""What ETX does not have, by module or name of ExecuTorch, and in one sentence what to use."""

from __future__ import annotations

__all__ = ["ABSENT", "INTERNAL"]

INTERNAL = (
    "ETX has no counterpart of this part of ExecuTorch 1.5.1; the README of etx-executorch lists"
    " what is there, and executorch itself can be imported in the same process"
)
_NO_DELEGATE = "cannot be lowered to yet: leave the partitioner out, or lower with executorch"
_NUMBERED = (
    "memory of a file is planned over its instructions: choose the algorithm by"
    " MemoryPlanningPass(memory_planning_algo=...), and read memory_reports of the result"
)
_ALWAYS = "its effect is a part of to_edge or to_executorch in ETX: leave the pass out"

ABSENT = {
    "backends": f"this backend {_NO_DELEGATE}",
    "backends.arm": (
        "it has ethosu, quantizer, tosa.compile_spec and tosa.partitioner; others are in"
        " etx_backend_arm, of the package etx-backend-arm[aot]"
    ),
    "backends.cortex_m": (
        "it has passes, quantizer.quantizer, target_config and edge_compile_config; others are in"
        " etx_backend_arm.cortex_m, of the package etx-backend-arm[aot]"
    ),
    "backends.transforms": "shared transforms of backends are not there: use etx_exir.passes",
    "backends.xnnpack": (
        "it has partition.xnnpack_partitioner, quantizer and recipes; others are in"
        " etx_backend_xnnpack,"
        " of the package etx-backend-xnnpack[aot]"
    ),
    "codegen": "kernels are selected by the CMake targets of etx-kernels-portable, not by codegen",
    "data": "the schemas are package data of etx_schema",
    "devtools.etdump": (
        "the schema is in etx_schema: etx_devtools.etdump reads ETDumps, etx_runtime.Recorder and"
        " etx run --etdump write them"
    ),
    "devtools.inspector.compare_results": "use etx compare, or etx_devtools.compare.compare",
    "devtools.inspector.inspector_cli": "use etx profile MODEL --etdump FILE",
    "devtools.intermediate_output_tap": (
        "the runtime records values without taps: use etx run --etdump FILE --values all, and etx"
        " compare --inside BACKEND for those in delegates"
    ),
    "devtools.pte_tool": "use etx diff A B, or etx_devtools.diff.diff",
    "devtools.scripts": "use etx profile MODEL --etdump FILE --json",
    "devtools.size_analysis_tool": "use etx size, or etx_devtools.sizes",
    "devtools.visualization": (
        "use etx report, or etx memory for the plan; model-explorer opens the file as it is, with"
        " node data of etx report --overlay"
    ),
    "examples": "examples lie in the repository's folder examples",
    "exir.capture.capture": "call torch.export.export, then to_edge",
    "exir.CaptureConfig": "call torch.export.export, then to_edge",
    "exir.ExirExportedProgram": "call torch.export.export, then to_edge",
    "exir.capture": "call torch.export.export, then to_edge",
    "exir.dialects.edge": (
        "an operator's arguments are those of torch's schema: use _schema and _op of an overload of"
        " exir_ops.edge"
    ),
    "exir.memory": "views are planned at emission, and memory is never freed: use alloc",
    "exir.memory_planning": _NUMBERED,
    "exir.passes": _ALWAYS,
    "exir.passes.quantize_io_pass": (
        "quantized inputs and outputs are not there yet: quantize in the model's forward"
    ),
    "exir.serde": "use torch.export.save and torch.export.load on the exported program",
    "exir.tensor": "use TensorSpec, or the fields of etx_schema.Tensor for what is in a file",
    "exir.tracer": "only torch.export captures programs",
    "exir.verification": "use etx_exir.lower.verify",
    "export": "recipes, their registry and sessions are there; recipes are not combined",
    "extension.flat_tensor": "use etx_schema.read_ptd and etx_schema.write_ptd",
    "extension.llm": (
        "export of language models is not there yet: export the model with torch.export, and lower"
        " it with to_edge"
    ),
    "extension.pybindings.portable_lib._create_profile_block": (
        "use Method.trace and a Recorder of etx_runtime"
    ),
    "extension.training": (
        "training on the device is not there yet: train before torch.export, or run a step that"
        " was exported whole"
    ),
    "kernels": "the kernels are those of etx-kernels-portable, and installing it is enough",
}
