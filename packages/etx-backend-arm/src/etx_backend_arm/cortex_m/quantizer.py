# SPDX-License-Identifier: BSD-3-Clause
"""The quantizer whose programs become operators of ``cortex_m::``: needs the extra ``[aot]``."""

from __future__ import annotations

from dataclasses import replace

import torch
from etx_quant import Int8Quantizer
from etx_quant.rows import FROM_ZERO_TO_ONE, ROWS, Arithmetic, Moved, Row, Split
from torch.fx import GraphModule

from etx_backend_arm.cortex_m.recurrent import unroll
from etx_backend_arm.masks import rewrite_attention

aten = torch.ops.aten
POOLS = {
    aten.avg_pool2d.default: Moved(),
    aten.adaptive_avg_pool2d.default: Moved(),
}
MOVES = {
    **{
        target: Moved()
        for target in (
            aten.as_strided_copy.default,
            aten.expand_copy.default,
            aten.permute_copy.default,
            aten.repeat_interleave.self_int,
            aten.select_copy.int,
            aten.slice_copy.Tensor,
            aten.squeeze_copy.default,
            aten.squeeze_copy.dim,
            aten.t_copy.default,
            aten.transpose_copy.int,
            aten.unfold_copy.default,
            aten.unsqueeze_copy.default,
            aten.view_copy.default,
            aten._unsafe_view.default,
        )
    },
    aten.split_copy.Tensor: Split(),
}
"""Copies, which models have that are lowered already."""
MORE = {
    aten.mean.dim: Moved(),
    aten.abs.default: Arithmetic(),
    aten.bmm.default: Arithmetic(),
    aten.div.Tensor: Arithmetic(),
    aten.matmul.default: Arithmetic(),
    aten.neg.default: Arithmetic(),
    aten.softmax.int: Arithmetic(fixed=FROM_ZERO_TO_ONE),
}


def _of_inputs(row: Row) -> Row:
    """Return a row that takes inputs of the model, too: what follows is of integers."""
    return replace(row, of_inputs=True) if isinstance(row, (Moved, Split)) else row


class CortexMQuantizer(Int8Quantizer):
    """Annotates for int8 per channel; means keep scale and zero point of their input.

    What moves, joins or pools inputs of the model is integer; a mean of one is as quick in float.
    Recurrent layers become the operators of their steps, at most 256 of them.
    """

    rows = {target: _of_inputs(row) for target, row in (ROWS | POOLS | MOVES).items()} | MORE

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Make operators such as have rows."""
        unroll(model, self._is_rewritten)
        rewrite_attention(model, self._is_rewritten)
        return super().transform_for_annotation(model)
