# SPDX-License-Identifier: BSD-3-Clause
"""Say what is in a file, as one JSON-able document: what `etx show --json` prints."""

from __future__ import annotations

from typing import Any

from etx_schema._generated.bundled_program import BundledMethodTestCase, Tensor, Value
from etx_schema.bundle import program_of, read_bundle
from etx_schema.dtypes import dtype_name
from etx_schema.inspect.describe_method import Method
from etx_schema.ptd import PtdFile, PtdLayout
from etx_schema.pte_layout import PteLayout, segment_table
from etx_schema.pte_reader import assemble, read_program
from etx_schema.targets.peer import compare


def describe_pte(view: memoryview) -> dict[str, Any]:
    """Describe a `.pte`."""
    program, layout = read_program(view)
    segments = [vars(info) | {"names": list(info.names)} for info in segment_table(program, layout)]
    pte = assemble(view, program, layout)
    methods = [Method(pte, plan).describe() for plan in pte.program.execution_plan]
    return {
        "format": "pte",
        "version": pte.program.version,
        "bytes": _sizes(layout),
        "methods": methods,
        "segments": segments,
        "named_data": {name: len(blob.data) for name, blob in pte.named_data.items()},
        "executorch": compare(pte),
    }


def describe_bundle(view: memoryview) -> dict[str, Any]:
    """Describe a bundled program: that of its program, and `suites`."""
    bundle = read_bundle(view)
    suites = [
        {"method": suite.method_name, "cases": [_describe_case(case) for case in suite.test_cases]}
        for suite in bundle.method_test_suites
    ]
    return describe_pte(program_of(view)) | {"format": "bpte", "suites": suites}


def _describe_case(case: BundledMethodTestCase) -> dict[str, Any]:
    return {
        "inputs": [_value(entry) for entry in case.inputs],
        "expected_outputs": [_value(entry) for entry in case.expected_outputs],
    }


def _value(entry: Value) -> dict[str, Any]:
    value = entry.val
    if isinstance(value, Tensor):
        return {
            "type": "Tensor",
            "dtype": dtype_name(value.scalar_type),
            "sizes": value.sizes,
            "dim_order": value.dim_order,
        }
    name = type(value).__name__
    return {"type": name, "value": getattr(value, f"{name.lower()}_val")}


def describe_ptd(ptd: PtdFile, layout: PtdLayout) -> dict[str, Any]:
    """Describe a `.ptd`."""
    entries = []
    for name, blob in ptd.named_data.items():
        entry: dict[str, Any] = {"name": name, "bytes": len(blob.data)}
        if blob.layout is not None:
            entry["dtype"] = dtype_name(blob.layout.scalar_type)
            entry["sizes"] = blob.layout.sizes
            entry["dim_order"] = blob.layout.dim_order
        entries.append(entry)
    return {"format": "ptd", "version": ptd.version, "bytes": _sizes(layout), "entries": entries}


def _sizes(layout: PteLayout | PtdLayout) -> dict[str, int]:
    return {
        "file": layout.file_size,
        "program": layout.program_size,
        "segments": layout.segment_data_size,
    }
