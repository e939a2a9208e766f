# SPDX-License-Identifier: BSD-3-Clause
"""Quantizers whose programs become TOSA of the INT profile: need the extra ``[aot]``."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch
from etx_quant import (
    Int8Quantizer,
    QuantizationConfig,
    QuantizationError,
    get_symmetric_quantization_config,
)
from etx_quant.config import EPS
from etx_quant.rows import (
    FROM_ZERO_TO_ONE,
    ROWS,
    Arithmetic,
    Compared,
    Moved,
    Recurrent,
    Row,
    Split,
    Table,
    Weighted,
)
from torch.fx import GraphModule

from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.masks import rewrite_attention
from etx_backend_arm.nodes import Profile
from etx_backend_arm.nodes.functions import INVERSES
from etx_backend_arm.nodes.logic import COMPARISONS
from etx_backend_arm.promoted import promote_filled
from etx_backend_arm.rewrites import rewrite_whole

__all__ = [
    "TOSAQuantizer",
    "get_symmetric_a8w4_quantization_config",
    "get_symmetric_a16w8_quantization_config",
]


aten = torch.ops.aten


def _without_floats(row: Row) -> Row:
    """Return a row for what has no floats to fall back to."""
    if isinstance(row, Arithmetic):
        return replace(row, is_sum=False)
    return replace(row, of_inputs=True) if isinstance(row, (Moved, Split)) else row


ALSO_INTEGER: dict[object, Row] = {
    **{target: _without_floats(row) for target, row in ROWS.items()},
    **dict.fromkeys(INVERSES, Arithmetic()),
    **{
        target: Compared()
        for packet in COMPARISONS
        for target in (packet.Tensor, packet.Scalar)  # type: ignore[attr-defined]
    },
    **{
        target: Moved(of_inputs=True)
        for target in (
            aten.amin.default,
            aten.detach_copy.default,
            aten.expand_copy.default,
            aten.repeat_interleave.self_int,
            aten.permute_copy.default,
            aten.select_copy.int,
            aten.slice_copy.Tensor,
            aten.slice_scatter.default,
            aten.squeeze_copy.dim,
            aten.t_copy.default,
            aten.transpose_copy.int,
            aten.tril.default,
            aten.triu.default,
            aten.unsqueeze_copy.default,
            aten.view_copy.default,
        )
    },
    aten.bmm.default: Arithmetic(),
    aten.conv3d.default: Weighted(),
    aten.conv3d.padding: Weighted(),
    aten.cos.default: Arithmetic(),
    aten.cumsum.default: Arithmetic(),
    aten.div.Tensor: Arithmetic(),
    aten.div_.Tensor: Arithmetic(is_inplace=True),
    aten.embedding.default: Table(is_whole=True),
    aten.exp.default: Arithmetic(),
    **{
        target: Moved(of_inputs=True)
        for target in (
            aten.gather.default,
            aten.index.Tensor,
            aten.index_copy.default,
            aten.index_put.default,
            aten.index_select.default,
        )
    },
    aten.index_copy_.default: Moved(is_inplace=True, of_inputs=True),
    aten.index_put_.default: Moved(is_inplace=True, of_inputs=True),
    aten.floor.default: Arithmetic(),
    aten.layer_norm.default: Arithmetic(takes_one=True),
    aten.lstm.input: Recurrent(is_xnnpack=False, is_whole=True),
    aten.masked_fill.Scalar: Arithmetic(takes_one=True),
    aten.masked_fill_.Scalar: Arithmetic(is_inplace=True, takes_one=True),
    aten.matmul.default: Arithmetic(),
    aten.mm.default: Arithmetic(),
    aten.pad.default: Moved(of_inputs=True, adds_numbers=True),
    aten.log.default: Arithmetic(),
    aten.log1p.default: Arithmetic(),
    aten.pow.Tensor_Scalar: Arithmetic(),
    aten.reciprocal.default: Arithmetic(),
    aten.rsqrt.default: Arithmetic(),
    aten.rsub.Scalar: Arithmetic(),
    aten.sin.default: Arithmetic(),
    aten.sqrt.default: Arithmetic(),
    aten.erf.default: Arithmetic(),
    aten.ceil.default: Arithmetic(),
    aten.round.default: Arithmetic(),
    aten.split_copy.Tensor: Split(of_inputs=True),
    aten.split_with_sizes_copy.default: Split(of_inputs=True),
    aten.softmax.int: Arithmetic(fixed=FROM_ZERO_TO_ONE),
    aten.where.self: Moved(of_inputs=True),
}
"""What runs on a CPU in float at little cost is int8 here: an NPU has nothing else."""


def get_symmetric_a16w8_quantization_config(
    is_per_channel: bool = True,
    is_qat: bool = False,
    is_dynamic: bool = False,
    weight_qmin: int = -127,
    weight_qmax: int = 127,
    epsilon: float = EPS,
) -> QuantizationConfig:
    """Return int16 activations around zero, and int8 weights: needs TOSA's extension int16.

    ``epsilon`` is the least scale of an activation.
    """
    base = get_symmetric_quantization_config(
        is_per_channel, is_qat, is_dynamic, -(2**15) + 1, 2**15 - 1, weight_qmin, weight_qmax
    )
    made = base.input_activation.observer_or_fake_quant_ctr.p
    activation = replace(
        base.input_activation,
        dtype=torch.int16,
        qscheme=torch.per_tensor_symmetric,
        observer_or_fake_quant_ctr=made.func.with_args(**{**made.keywords, "eps": epsilon}),
    )
    output = None if is_dynamic else activation
    return QuantizationConfig(activation, output, base.weight, None, is_qat)


def get_symmetric_a8w4_quantization_config(
    is_per_channel: bool = True, is_qat: bool = True, is_dynamic: bool = False
) -> QuantizationConfig:
    """Return int8 activations, and weights from -7 to 7, which TOSA's int4 holds."""
    bounds = {"weight_qmin": -7, "weight_qmax": 7}
    return get_symmetric_quantization_config(is_per_channel, is_qat, is_dynamic, **bounds)


class TOSAQuantizer(Int8Quantizer):
    """Annotates for int8 per channel unless ``set_global`` and its like say otherwise.

    It takes sums in front of norms, norms, softmax and products of activations, too. Raises
    QuantizationError for a compile spec without the profile INT.
    """

    rows: ClassVar[dict[object, Row]] = ALSO_INTEGER
    norms_alone: ClassVar[bool] = True

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Take whole operators apart of which each part is quantized."""
        promote_filled(model)
        rewrite_whole(model, self._is_rewritten)
        rewrite_attention(model, self._is_rewritten)
        return super().transform_for_annotation(model)

    def __init__(self, compile_spec: TosaCompileSpec | None = None) -> None:
        super().__init__()
        self.compile_spec = compile_spec or TosaCompileSpec("TOSA-1.0+INT")
        if Profile.INT not in self.compile_spec.profiles:
            raise QuantizationError(
                f"{self.compile_spec.tosa_spec} has floats only; quantize for TOSA-1.0+INT"
            )
