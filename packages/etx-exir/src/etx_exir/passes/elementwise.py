# SPDX-License-Identifier: BSD-3-Clause
"""The operators that compute each element of their result from the same element of operands."""

from __future__ import annotations

import torch

from etx_exir.dim_order import CLONE, TO_COPY

aten = torch.ops.aten

UNARY = frozenset(
    {
        aten.abs.default,
        aten.add.Scalar,
        aten.ceil.default,
        aten.clamp.default,
        aten.cos.default,
        aten.div.Scalar,
        aten.elu.default,
        aten.eq.Scalar,
        aten.erf.default,
        aten.exp.default,
        aten.floor.default,
        aten.ge.Scalar,
        aten.gelu.default,
        aten.gt.Scalar,
        aten.hardtanh.default,
        aten.isnan.default,
        aten.le.Scalar,
        aten.leaky_relu.default,
        aten.log.default,
        aten.logical_not.default,
        aten.lt.Scalar,
        aten.mul.Scalar,
        aten.ne.Scalar,
        aten.neg.default,
        aten.pow.Tensor_Scalar,
        aten.reciprocal.default,
        aten.relu.default,
        aten.round.default,
        aten.rsqrt.default,
        aten.rsub.Scalar,
        aten.sigmoid.default,
        aten.sin.default,
        aten.sqrt.default,
        aten.sub.Scalar,
        aten.tanh.default,
        CLONE,
        TO_COPY,
    }
)
BROADCASTING = frozenset(
    {
        aten.add.Tensor,
        aten.atan2.default,
        aten.div.Tensor,
        aten.eq.Tensor,
        aten.ge.Tensor,
        aten.gt.Tensor,
        aten.le.Tensor,
        aten.logical_and.default,
        aten.logical_or.default,
        aten.lt.Tensor,
        aten.maximum.default,
        aten.minimum.default,
        aten.mul.Tensor,
        aten.ne.Tensor,
        aten.pow.Tensor_Tensor,
        aten.sub.Tensor,
        aten.where.self,
    }
)
