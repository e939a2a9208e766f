# SPDX-License-Identifier: BSD-3-Clause
"""Lower a case to a file."""

from __future__ import annotations

from functools import cache

import torch
from case import Case
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import EdgeProgramManager, to_edge_transform_and_lower
from torch import nn


def lower(case: Case) -> EdgeProgramManager:
    """Return the program of `case` with what XNNPACK takes delegated, heavy or not."""
    with torch.no_grad():
        return to_edge_transform_and_lower(
            export(case), partitioner=[XnnpackPartitioner(heavy_only=False)]
        )


@cache
def made(case: Case) -> nn.Module:
    """Return the module of `case`, which may have been quantized; it is not to be changed."""
    return case.module()


@cache
def export(case: Case) -> torch.export.ExportedProgram:
    """Return the exported program of `case`; it is not to be changed."""
    with torch.no_grad():
        return torch.export.export(
            made(case), case.arguments()[0], dynamic_shapes=case.dynamic_shapes()
        )
