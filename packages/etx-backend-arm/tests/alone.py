# SPDX-License-Identifier: BSD-3-Clause
"""Something true of this package, run where only what it declares is installed."""

from __future__ import annotations

from etx_backend_arm._generated.tosa import DType
from etx_backend_arm.tosa import Graph, read_tosa

graph = Graph()
x = graph.input("x", (1, 4), DType.FP32)
graph.output(graph.clamp(x, 0.0, 6.0, "y", (1, 4)))
data = graph.serialize()
assert data[4:8] == b"TOSA"
assert len(read_tosa(data).regions[0].blocks[0].operators) == 1
