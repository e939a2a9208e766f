# SPDX-License-Identifier: BSD-3-Clause
"""Plant a wrong lowering in the backend, and find its node by bisection and by what it computes."""

from __future__ import annotations

import sys
import warnings

import torch
from etx_devtools.compare import compare
from etx_devtools.compare.bisect import bisect, compile_part
from etx_devtools.compare.inside import compile_tapped
from models import models
from pointwise_aot import PointwisePartitioner
from pointwise_aot.table import TABLE

aten = torch.ops.aten
FAULTS = [
    ("chain", aten.relu.default, aten.abs.default),
    ("chain", aten.maximum.default, aten.minimum.default),
    ("every", aten.tanh.default, aten.sigmoid.default),
]


def find(name: str, planted: torch._ops.OpOverload, wrong: torch._ops.OpOverload) -> bool:
    """Lower `planted` as `wrong` in one model; print what was found, return whether it is that."""
    module, calls, shapes = models()[name]
    program = torch.export.export(module, calls[0], dynamic_shapes=shapes)
    right = TABLE[planted]
    TABLE[planted] = TABLE[wrong]
    try:
        partitioner = PointwisePartitioner()
        whole, _ = compile_part(program, partitioner, 0)
        border = compare(whole, program, calls[:1]).first
        found = bisect(
            program, partitioner, lambda pte: compare(pte, program, calls[:1]), wrong=True
        )
        tapped = compare(compile_tapped(program, [partitioner]), program, calls[:1]).first
    finally:
        TABLE[planted] = right
    inside = "nothing" if tapped is None else tapped[1].value
    print(
        f"{name}: {found.operator} is wrong, {found.compilations} compilations among "
        f"{found.nodes} nodes; tapped: {inside}"
    )
    is_found = found.operator == str(planted) and inside == found.name
    return is_found and border is not None and 2 ** (found.compilations - 1) <= found.nodes


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = [find(*fault) for fault in FAULTS]
    sys.exit(not all(found))
