# SPDX-License-Identifier: BSD-3-Clause
"""A call of each operator that PyTorch tags as core: `CALLS`, in groups; keywords come last."""

from __future__ import annotations

from typing import Any

import torch

aten = torch.ops.aten
X = torch.linspace(-0.9, 0.8, 12).reshape(3, 4)
Y = torch.linspace(0.3, 1.7, 12).reshape(3, 4)
ABOVE = Y + 1
BITS = torch.arange(12).reshape(3, 4)
MASK = BITS % 3 == 0
ROW = torch.tensor([2, 0])
PLACES = torch.tensor([[0, 2, 1, 1], [2, 1, 0, 2]])
LINE = torch.linspace(-1, 1, 12).reshape(1, 2, 6)
IMAGE = torch.linspace(-2, 2, 50).reshape(1, 2, 5, 5).sin()
VOLUME = torch.linspace(-2, 2, 128).reshape(1, 2, 4, 4, 4).cos()
WEIGHT = torch.linspace(-1, 1, 36).reshape(2, 2, 3, 3)
COMPLEX = torch.complex(X, Y)
GRID = torch.linspace(-1, 1, 18).reshape(1, 3, 3, 2)
TWO, STATS, SCALES = torch.tensor([0.5, 2.0]), torch.tensor([0.1, -0.2]), torch.tensor([1.5, 0.7])
MEAN, RSTD = torch.tensor([[0.1]]), torch.tensor([[1.2]])
CONVOLVED = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
POOLED = torch.linspace(0, 1, 8).reshape(1, 2, 2, 2)
TAKEN = torch.tensor([[[[0, 2], [12, 14]], [[0, 4], [10, 24]]]])

Call = tuple[Any, ...]
UNARY = (
    "abs acos asin asinh atan atanh ceil cos cosh elu erf exp expm1 floor gelu hardtanh isinf isnan"
    " leaky_relu logical_not neg reciprocal relu round sigmoid sign sin sinh tan tanh trunc alias"
    " clone _to_copy mean prod any"
)
POSITIVE = "log log10 log1p log2 rsqrt sqrt"
COMPARED = "eq ne lt le gt ge"
ARITHMETIC = "add sub mul div fmod remainder"


def unary(names: str, *args: Any) -> list[Call]:
    return [(getattr(aten, name).default, *args) for name in names.split()]


def of(overload: str, names: str, *args: Any) -> list[Call]:
    return [(getattr(getattr(aten, name), overload), *args) for name in names.split()]


CALLS: dict[str, list[Call]] = {
    "unary": [
        *unary(UNARY, X),
        *unary(POSITIVE, Y),
        (aten.acosh.default, ABOVE),
        (aten.bitwise_not.default, BITS),
        (aten.clamp.default, X, -0.5, 0.5),
        (aten.clamp.Tensor, X, Y * -1, Y),
        (aten.fill.Scalar, X, 2.5),
        (aten.full_like.default, X, 1.5),
    ],
    "binary": [
        *of("Tensor", COMPARED, X, Y),
        *of("Scalar", COMPARED, X, 0.25),
        *of("Tensor", ARITHMETIC, X, Y),
        *of("Scalar", ARITHMETIC, X, 0.75),
        *of("default", "atan2 maximum minimum", X, Y),
        *of("default", "logical_and logical_or logical_xor", MASK, BITS > 5),
        *of("Tensor", "bitwise_and bitwise_or bitwise_xor", BITS, BITS + 3),
        *of("Scalar", "bitwise_and bitwise_or bitwise_xor", BITS, 5),
        (aten.div.Scalar_mode, X, 0.3, {"rounding_mode": "floor"}),
        (aten.div.Tensor_mode, X, Y, {"rounding_mode": "trunc"}),
        (aten.pow.Scalar, 2.0, X),
        (aten.pow.Tensor_Scalar, Y, 1.5),
        (aten.pow.Tensor_Tensor, Y, X),
        (aten.where.self, MASK, X, Y),
        (aten.copy.default, X, Y),
        (aten.masked_scatter.default, X, MASK, Y),
    ],
    "reduced and moved": [
        *of("default", "amax amin", X, [1]),
        *of("default", "argmax argmin", X, 1),
        *of("dim", "max min any", X, 1),
        *of("dim", "mean var", X, [0]),
        (aten.any.dims, X, [0, 1]),
        (aten.sum.dim_IntList, X, [1], True),
        (aten.prod.dim_int, X, 1),
        (aten.var.correction, X, [1]),
        (aten.cumsum.default, X, 1),
        (aten.topk.default, X, 2),
        (aten.sort.default, X),
        *of("default", "_softmax _log_softmax", X, 1, False),
        (aten.as_strided.default, X, [2, 3], [4, 1], 1),
        (aten.cat.default, [X, Y], 1),
        (aten.constant_pad_nd.default, X, [1, 2], 0.5),
        (aten.diagonal.default, X),
        (aten.expand.default, X, [2, 3, 4]),
        (aten.flip.default, X, [0]),
        (aten.permute.default, X, [1, 0]),
        (aten.repeat.default, X, [2, 1]),
        (aten.select.int, X, 1, 2),
        (aten.select_scatter.default, X, torch.ones(3), 1, 2),
        (aten.slice.Tensor, X, 1, 1, 3),
        (aten.slice_scatter.default, X, torch.ones(3, 2), 1, 1, 3),
        (aten.split_with_sizes.default, X, [1, 3], 1),
        (aten.squeeze.dim, LINE, 0),
        (aten.squeeze.dims, LINE, [0]),
        (aten.unsqueeze.default, X, 1),
        (aten.view.default, X, [4, 3]),
        (aten.reflection_pad1d.default, LINE, [2, 1]),
        (aten.reflection_pad2d.default, IMAGE, [1, 2, 0, 1]),
        (aten.reflection_pad3d.default, VOLUME, [1, 0, 2, 1, 0, 1]),
        (aten.replication_pad2d.default, IMAGE, [1, 2, 0, 1]),
        (aten.replication_pad3d.default, VOLUME, [1, 0, 2, 1, 0, 1]),
    ],
    "indexed": [
        (aten.embedding.default, X, ROW),
        (aten._embedding_bag.default, X, ROW, torch.tensor([0, 1])),
        (aten.embedding_dense_backward.default, X[:2], ROW, 4, -1, False),
        (aten.gather.default, X, 0, PLACES),
        (aten.index.Tensor, X, [ROW]),
        (aten.index_put.default, X, [ROW], Y[:2]),
        (aten.index_select.default, X, 0, ROW),
        (aten.nonzero.default, MASK),
        (aten.scatter.src, X, 0, PLACES[:1], Y[:1]),
        (aten.scatter.value, X, 0, PLACES, 0.5),
        (aten.scatter_add.default, X, 0, PLACES, Y[:2]),
        (aten.scatter_reduce.two, X, 0, PLACES, Y[:2], "amax"),
    ],
    "layers": [
        (aten.addmm.default, X[:, :3], X, Y.t()),
        (aten.mm.default, X, Y.t()),
        (aten.bmm.default, LINE, LINE.transpose(1, 2)),
        (aten._cdist_forward.default, X, Y, 2.0, None),
        (aten._pdist_forward.default, X),
        (aten.convolution.default, IMAGE, WEIGHT, TWO, *CONVOLVED),
        (
            aten.convolution_backward.default,
            IMAGE[:, :, :3, :3],
            IMAGE,
            WEIGHT,
            [2],
            *CONVOLVED,
            [True] * 3,
        ),
        (aten.col2im.default, torch.ones(1, 8, 9), [4, 4], [2, 2], [1, 1], [0, 0], [1, 1]),
        (aten._fft_r2c.default, X, [1], 0, True),
        (aten._fft_c2r.default, COMPLEX, [1], 0, 6),
        (aten.grid_sampler_2d.default, IMAGE, GRID, 0, 0, False),
        (aten.upsample_bilinear2d.vec, IMAGE, [7, 8], False, None),
        (aten.upsample_nearest2d.vec, IMAGE, [7, 8], None),
    ],
    "pools and norms": [
        (aten._adaptive_avg_pool2d.default, IMAGE, [2, 3]),
        (aten._adaptive_avg_pool2d_backward.default, POOLED, IMAGE),
        (aten._adaptive_avg_pool3d.default, VOLUME, [2, 3, 1]),
        (aten.adaptive_avg_pool1d.default, LINE, [4]),
        (aten.avg_pool1d.default, LINE, [2]),
        (aten.avg_pool2d.default, IMAGE, [2, 2]),
        (
            aten.avg_pool2d_backward.default,
            POOLED,
            IMAGE,
            [2, 2],
            [2, 2],
            [0, 0],
            False,
            True,
            None,
        ),
        (aten.avg_pool3d.default, VOLUME, [2, 2, 2]),
        (aten.max_pool2d_with_indices.default, IMAGE, [2, 2]),
        (
            aten.max_pool2d_with_indices_backward.default,
            POOLED,
            IMAGE,
            [2, 2],
            [2, 2],
            [0, 0],
            [1, 1],
            False,
            TAKEN,
        ),
        (aten.max_pool3d_with_indices.default, VOLUME, [2, 2, 2]),
        (aten._native_batch_norm_legit.default, IMAGE, TWO, TWO, STATS, SCALES, True, 0.1, 1e-5),
        (aten._native_batch_norm_legit.no_stats, IMAGE, TWO, TWO, True, 0.1, 1e-5),
        (
            aten._native_batch_norm_legit_no_training.default,
            IMAGE,
            TWO,
            TWO,
            STATS,
            SCALES,
            0.1,
            1e-5,
        ),
        (aten.native_group_norm.default, IMAGE, TWO, TWO, 1, 2, 25, 1, 1e-5),
        (
            aten.native_group_norm_backward.default,
            IMAGE.flip(2),
            IMAGE,
            MEAN,
            RSTD,
            TWO,
            1,
            2,
            25,
            1,
            [True] * 3,
        ),
        (aten.native_layer_norm.default, X, [4], X[0], Y[0], 1e-5),
        (
            aten.native_layer_norm_backward.default,
            Y,
            X,
            [4],
            X[:, :1].clone(),
            Y[:, :1].clone(),
            X[0],
            Y[0],
            [True] * 3,
        ),
    ],
    "created": [
        (aten.arange.start_step, 1, 9, 2),
        (aten.full.default, [2, 3], 1.5),
        (aten.scalar_tensor.default, 2.5),
        (aten._local_scalar_dense.default, BITS[1, 2]),
        (aten.sym_size.int, X, 0),
        (aten.sym_stride.int, X, 0),
        (aten.sym_numel.default, X),
        (aten.sym_storage_offset.default, X),
        (aten.sym_is_contiguous.default, X),
        (aten.atan2.out, X, Y),
    ],
    "random": [
        (aten.empty.memory_format, [2, 3]),
        (aten.empty_strided.default, [2, 3], [3, 1]),
        (aten.rand.default, [2, 3]),
        (aten.randn.default, [2, 3]),
        (aten.randperm.default, 5),
        (aten.native_dropout.default, X, 0.5, True),
        (aten.resize_.default, X, [2, 5]),
    ],
}
