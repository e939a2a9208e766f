# SPDX-License-Identifier: BSD-3-Clause
"""The passes of the compiler, in the order in which they run."""

from __future__ import annotations

from etx_exir.passes.base import NodePass, Pass
from etx_exir.passes.copy_views import CopyViews
from etx_exir.passes.fuse_batch_norm import FuseBatchNorm
from etx_exir.passes.remove_dead_code import RemoveDeadCode
from etx_exir.passes.remove_noops import RemoveNoops
from etx_exir.passes.scalar_operands import ScalarOperands

__all__ = ["PIPELINE", "NodePass", "Pass"]

PIPELINE: tuple[Pass, ...] = (
    CopyViews(),  # first: the other passes know the copying forms alone
    ScalarOperands(),
    RemoveNoops(),  # after the operands are scalars, since x + 0 is seen as such
    FuseBatchNorm(),
    RemoveDeadCode(),  # last
)
