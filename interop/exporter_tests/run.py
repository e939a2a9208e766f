# SPDX-License-Identifier: BSD-3-Clause
"""Run ExecuTorch's exporter tests, as they lie in its wheel, on ETX: `run.py SITE-PACKAGES`."""

from __future__ import annotations

import sys
from pathlib import Path

from suite import Suite, main

FILES = (
    "emit.test.test_emit",
    "tests.test_memory_planning",
    "backend.test.test_backend_with_named_data_map",
    "backend.test.test_backends_lifted",
    "backend.test.test_compatibility",
    "backend.test.test_debug_handle_map",
    "backend.test.test_delegate_map_builder",
    "backend.test.test_graph_partition",
    "backend.test.test_group_partitioner",
    "backend.test.test_lowered_backend_module",
    "backend.test.test_partitioner",
    "backend.test.test_passes",
    "backend.test.test_to_backend_multi_method",
    "backend.test.test_utils",
    "_serialize.test.test_cord",
    "_serialize.test.test_flatbuffer",
    "_serialize.test.test_flatbuffer_program",
    "_serialize.test.test_named_data_store",
    "_serialize.test.test_program",
    "_serialize.test.test_ptn",
    "_serialize.test.test_serialize",
    "program.test.test_program",
    "tests.test_delegate",
    "tests.test_dynamic_shape_propagation",
    "tests.test_remove_view_copy",
)


if __name__ == "__main__":
    suite = Suite("executorch.exir.", FILES, Path(__file__).with_name("not_applicable.json"))
    sys.exit(main(suite, sys.argv[1:]))
