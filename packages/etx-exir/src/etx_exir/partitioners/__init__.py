# SPDX-License-Identifier: BSD-3-Clause
"""Partitioners for the common cases, and the pieces they are made of."""

from __future__ import annotations

from etx_exir.partitioners.all_nodes import AllNodePartitioner
from etx_exir.partitioners.base import GroupPartitioner
from etx_exir.partitioners.by_module import ModulePartitioner
from etx_exir.partitioners.by_pattern import PatternPartitioner, pattern_graph
from etx_exir.partitioners.by_support import OperatorSupportPartitioner
from etx_exir.partitioners.duplicates import join_dequantize, split_dequantize
from etx_exir.partitioners.grouping import group_nodes
from etx_exir.partitioners.tagging import tag_constant_data, tag_mutated_buffer

__all__ = [
    "AllNodePartitioner",
    "GroupPartitioner",
    "ModulePartitioner",
    "OperatorSupportPartitioner",
    "PatternPartitioner",
    "group_nodes",
    "join_dequantize",
    "pattern_graph",
    "split_dequantize",
    "tag_constant_data",
    "tag_mutated_buffer",
]
