# SPDX-License-Identifier: BSD-3-Clause
"""The passes of the compiler, in the order in which they run."""

from __future__ import annotations

from etx_exir.passes.base import NodePass, Pass
from etx_exir.passes.fuse.absorb_batch_norm import AbsorbBatchNorm
from etx_exir.passes.fuse.add_bias import AddBias
from etx_exir.passes.fuse.fold_scale import FoldScale
from etx_exir.passes.fuse.fuse_batch_norm import FuseBatchNorm
from etx_exir.passes.fuse.fuse_embedding import FuseEmbedding
from etx_exir.passes.fuse.linear_from_products import LinearFromProducts
from etx_exir.passes.fuse.plain_extremes import PlainExtremes
from etx_exir.passes.normalize.align_index_put import AlignIndexPut
from etx_exir.passes.normalize.copy_views import CopyViews
from etx_exir.passes.normalize.expand_powers import ExpandPowers
from etx_exir.passes.normalize.linear_of_vectors import LinearOfVectors
from etx_exir.passes.normalize.lower_attention import LowerAttention
from etx_exir.passes.normalize.normalize_strides import NormalizeStrides
from etx_exir.passes.normalize.remove_asserts import RemoveAsserts
from etx_exir.passes.normalize.resize_bytes import ResizeBytes
from etx_exir.passes.normalize.roll_flat import RollFlat
from etx_exir.passes.normalize.scalar_operands import ScalarOperands
from etx_exir.passes.normalize.set_dim_order import SetDimOrder
from etx_exir.passes.normalize.split_dynamic import SplitDynamic
from etx_exir.passes.normalize.widen_selections import WidenSelections
from etx_exir.passes.simplify.common_subexpressions import CommonSubexpressions
from etx_exir.passes.simplify.crop_kernels import CropKernels
from etx_exir.passes.simplify.delay_constants import DelayConstants
from etx_exir.passes.simplify.drop_expands import DropExpands
from etx_exir.passes.simplify.fold_constants import FoldConstants
from etx_exir.passes.simplify.forward_parts import ForwardParts
from etx_exir.passes.simplify.merge_copies import MergeCopies
from etx_exir.passes.simplify.merge_views import MergeViews
from etx_exir.passes.simplify.move_permutes import MovePermutes
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from etx_exir.passes.simplify.remove_noops import RemoveNoops
from etx_exir.passes.simplify.share_constants import ShareConstants

__all__ = ["PIPELINE", "NodePass", "Pass"]

PIPELINE: tuple[Pass, ...] = (
    RemoveAsserts(),
    CopyViews(),  # before all that follow: they know only the copying forms
    NormalizeStrides(),  # before layouts are read from strides
    SplitDynamic(),
    RollFlat(),
    SetDimOrder(),
    ResizeBytes(),  # after layouts are explicit: its copies keep them
    LowerAttention(),  # before folding, which stores its masks
    AddBias(),
    LinearOfVectors(),
    LinearFromProducts(),  # before folding, which would store transposed weights
    FoldConstants(),
    ScalarOperands(),  # after folding, which turns computed scalars into constants
    ExpandPowers(),
    RemoveNoops(),  # after the operands are scalars, since x + 0 is seen as such
    AlignIndexPut(),  # before the views it adds are merged
    ForwardParts(),  # before views are merged, since it leaves some
    MovePermutes(),  # before permutations are merged with those that it moves to them
    MergeViews(),
    MergeCopies(),
    RemoveNoops(),  # again: merged views and copies may be those of their source
    DropExpands(),
    FoldScale(),  # after the operands are scalars
    FuseBatchNorm(),
    AbsorbBatchNorm(),  # what no layer before it took
    CropKernels(),  # after all that scales weights
    FuseEmbedding(),  # after folding, since it reads weights and scales
    RemoveDeadCode(),  # before the merges, which would compare what is dead
    PlainExtremes(),  # after dead code is gone, which reads indices
    ShareConstants(),  # before expressions of equal constants are compared
    CommonSubexpressions(),
    WidenSelections(),  # after all that computes values again, with new symbols
    DelayConstants(),  # after folding, which computes what takes no more room
    RemoveDeadCode(),  # last
)
