# SPDX-License-Identifier: BSD-3-Clause
"""Operators without a kernel on the default target become some that have one."""

import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from programs import Calls, counts
from torch import nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

aten = torch.ops.aten
X, Y = torch.randn(2, 3, 6, 6), torch.randn(2, 3, 6, 6)
NAN = torch.tensor([1.0, float("nan"), 3.0, float("nan")])
BYTES = torch.randint(-128, 128, (19, 24), dtype=torch.int8)
CUBE = torch.randn(2, 3, 5, 6, 7)
WORDS = torch.randint(0, 9, (3, 4))
PLACES, ADDED = torch.randint(0, 6, (2, 3, 6, 9)), torch.randn(2, 3, 6, 9)
BOUNDS = torch.tensor([-1.0, 0.0, 0.5, 2.0])
ORDERED = torch.arange(24.0).view(2, 12)[:, torch.randperm(12)]
GRID = (torch.randn(1, 2, 3, 4, 5), torch.randn(1, 2, 3, 2, 3))

FUNCTIONS = {
    "hardsigmoid": (F.hardsigmoid, (X,)),
    "hardswish": (F.hardswish, (X,)),
    "silu": (F.silu, (X,)),
    "relu6": (F.relu6, (X,)),
    "mish": (F.mish, (X,)),
    "softplus": (F.softplus, (X,)),
    "norm": (lambda x: x.norm(dim=-1), (X,)),
    "norm of order 0": (lambda x: torch.linalg.vector_norm(x, 0), (X,)),
    "norm of order 1": (lambda x: torch.linalg.vector_norm(x, 1, dim=(0, 2)), (X,)),
    "norm of order 3": (lambda x: torch.linalg.vector_norm(x, 3, dim=1, keepdim=True), (X,)),
    "largest": (lambda x: torch.linalg.vector_norm(x, float("inf"), dim=1), (X,)),
    "normalize": (F.normalize, (X,)),
    "sort": (lambda x: torch.sort(x, descending=True), (torch.randn(3, 5),)),
    "exp2": (torch.exp2, (X,)),
    "erfc": (torch.erfc, (X,)),
    "hypot": (torch.hypot, (X, Y)),
    "fmax": (torch.fmax, (NAN, NAN.flip(0))),
    "fmin": (torch.fmin, (NAN, NAN.flip(0) * 2)),
    "bucketize": (lambda x: torch.bucketize(x, BOUNDS), (torch.tensor([-2, 0.0, 0.5, 1, 3]),)),
    "bucketize right": (
        lambda x: torch.bucketize(x, BOUNDS, out_int32=True, right=True),
        (torch.tensor([-2, 0.0, 0.5, 1, 3]),),
    ),
    "product of bytes": (torch._int_mm, (BYTES, BYTES.t().contiguous())),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), (X, Y)),
    "lerp from the end": (lambda x, y: torch.lerp(x, y, 0.7), (X, Y)),
    "nan_to_num": (torch.nan_to_num, (NAN,)),
    "take": (torch.take, (X, torch.tensor([0, -1, 7]))),
    "take one": (torch.take, (torch.tensor(2.5), torch.tensor(-1))),
    "addmv": (torch.addmv, (torch.randn(3), torch.randn(3, 4), torch.randn(4))),
    "adaptive max": (lambda x: F.adaptive_max_pool2d(x, (2, 3)), (X,)),
    "adaptive max of windows": (lambda x: F.adaptive_max_pool2d(x, 4, True), (X,)),
    "average in 3-d": (lambda x: F.avg_pool3d(x, 3, 2, 1, True, False), (CUBE,)),
    "adaptive average in 3-d": (lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), (CUBE,)),
    "max in 3-d": (lambda x: F.max_pool3d(x, 3, 2, 1, return_indices=True), (CUBE,)),
    "adaptive max in 3-d": (lambda x: F.adaptive_max_pool3d(x, (2, 3, 4), True), (CUBE,)),
    "bags of words": (lambda x, i: F.embedding_bag(i, x, mode="sum"), (torch.randn(9, 4), WORDS)),
    "bags of words, largest": (
        lambda x, i: F.embedding_bag(i, x, mode="max"),
        (torch.randn(9, 4), WORDS),
    ),
    "bags with gradients": (
        lambda *x: aten._embedding_bag(*x, mode=1),
        (torch.randn(9, 4), WORDS[0], torch.tensor([0, 0, 3])),
    ),
    "gradient of average": (
        lambda g, x: aten.avg_pool2d_backward(g, x, [3, 3], [2, 2], [1, 1], False, False, None),
        (X[..., ::2, ::2].clone(), X),
    ),
    "gradient of adaptive average": (
        aten._adaptive_avg_pool2d_backward,
        (X[..., :4, :5].clone(), X),
    ),
    "cumprod": (lambda x: x.cumprod(-1), (X,)),
    "cummax": (lambda x: x.cummax(1), (X,)),
    "cummin": (lambda x: x.cummin(-1), (X.round(),)),
    "logcumsumexp": (lambda x: x.logcumsumexp(2), (X,)),
    **{
        f"scatter {reduce}": (
            lambda x, i, s, reduce=reduce: x.scatter_reduce(3, i, s, reduce),
            (X, PLACES, ADDED),
        )
        for reduce in ("sum", "prod", "mean", "amax", "amin")
    },
    "index reduce": (
        lambda x, i, s: x.index_reduce(1, i, s, "amin", include_self=False),
        (X, torch.tensor([2, 0, 2]), Y),
    ),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), (X,)),
    "rsub": (lambda x: 3 - x, (X,)),
    "chunk": (lambda x: x.chunk(3, 1), (X,)),
    "layer norm": (lambda x: F.layer_norm(x, (6,)), (X,)),
    "rms norm": (lambda x: F.rms_norm(x, (6,)), (X,)),
    "group norm": (lambda x: F.group_norm(x, 3), (X,)),
    "instance norm": (F.instance_norm, (X,)),
    "einsum": (lambda x, y: torch.einsum("bcij,bcjk->bik", x, y), (X, Y)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), mode="reflect"), (X,)),
    "one hot": (lambda x: F.one_hot(x, 5), (torch.tensor([0, 4, 2]),)),
    "masked": (lambda x: x.masked_fill(x > 0, 2.0), (X,)),
    "where": (lambda x: torch.where(x > 0, x, 0.0), (X,)),
    "floor": (lambda x: (x * 9) // 2, (X,)),
    "cross entropy": (F.cross_entropy, (torch.randn(3, 5), torch.tensor([0, 4, 2]))),
    "lgamma": (torch.lgamma, (X,)),
    "mvlgamma": (lambda x: torch.mvlgamma(x.abs() + 2, 3), (X,)),
    "digamma": (torch.digamma, (X,)),
    "erfinv": (torch.erfinv, (X.sin(),)),
    "i0": (torch.i0, (X,)),
    "i0e": (torch.special.i0e, (X,)),
    "i1": (torch.special.i1, (X,)),
    "i1e": (torch.special.i1e, (X,)),
    "erfcx": (torch.special.erfcx, (X,)),
    "log_ndtr": (torch.special.log_ndtr, (X,)),
    "polygamma": (lambda x: torch.polygamma(2, x), (X,)),
    "zeta": (lambda x: torch.special.zeta(3, x), (X,)),
    "ndtri": (torch.special.ndtri, (X.sigmoid(),)),
    "put": (
        lambda x: torch.ops.aten.put(x, torch.tensor([3, 0, 3]), torch.ones(3), True),
        (X,),
    ),
    "renorm of halves": (lambda x: torch.renorm(x.bfloat16(), 2, 1, 1.5).float(), (X,)),
    "spherical_bessel_j0": (torch.special.spherical_bessel_j0, (X,)),
    "signbit": (torch.signbit, (X,)),
    "copysign": (torch.copysign, (X, X.flip(0))),
    "frexp": (torch.frexp, (X,)),
    "nextafter": (torch.nextafter, (X, X.flip(0))),
    "ldexp": (torch.ldexp, (X, torch.tensor(3))),
    "round to digits": (lambda x: torch.round(x, decimals=2), (X,)),
    "addbmm": (lambda x: torch.addbmm(x[0, 0], x[0], x[0].mT @ x[0], beta=2), (X,)),
    "bilinear": (F.bilinear, (X[0, 0], X[0, 1], torch.randn(3, X.shape[-1], X.shape[-1]))),
    "as_strided_scatter": (
        lambda x: torch.as_strided_scatter(x, torch.ones(2), (2,), (3,), 1),
        (X,),
    ),
    "diagonal_scatter": (lambda x: torch.diagonal_scatter(x, x.diagonal() + 1), (X,)),
    "median": (lambda x: torch.median(x), (ORDERED,)),
    "median of rows": (lambda x: torch.median(x, 1), (ORDERED,)),
    "nanmedian": (torch.nanmedian, (NAN,)),
    "nanmedian of rows": (lambda x: torch.nanmedian(x, 1, keepdim=True), (NAN.repeat(2, 1),)),
    "kthvalue": (lambda x: torch.kthvalue(x, 3), (ORDERED,)),
    "mode": (lambda x: torch.mode(x, 0), (torch.tensor([[1, 2], [1, 0], [3, 0]]),)),
    "searchsorted": (torch.searchsorted, (ORDERED.sort().values, ORDERED / 2 + 3)),
    "searchsorted by order": (
        lambda x, y: torch.searchsorted(x, y, side="right", sorter=torch.argsort(x)),
        (ORDERED, ORDERED / 2 + 3),
    ),
    "searchsorted number": (lambda x: torch.searchsorted(x, 0.5, out_int32=True), (BOUNDS,)),
    "bucketize number": (lambda x: torch.bucketize(0.5, x, right=True), (BOUNDS,)),
    "histc": (lambda x: torch.histc(x, 7), (X,)),
    "histc between": (lambda x: torch.histc(x, 7, -1, 2), (X,)),
    "rand_like": (lambda x: torch.rand_like(x) < 1, (X,)),
    "randn_like": (lambda x: torch.randn_like(x).isfinite(), (X,)),
    "randperm": (lambda x: torch.randperm(x.shape[1]).sort().values, (ORDERED,)),
    "randint": (lambda x: torch.randint(3, 4, (2,)) + x, (torch.tensor(1),)),
    "randint_like": (lambda x: torch.randint_like(x, 1), (X,)),
    "3-d grid": (lambda x, y: F.grid_sample(x, y, align_corners=False), GRID),
    "3-d grid of the nearest": (
        lambda x, y: F.grid_sample(x, y, "nearest", "reflection", align_corners=True),
        GRID,
    ),
    "transformer": (
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(),
        (torch.randn(2, 4, 8),),
    ),
}


class All(nn.Module):
    """All functions in one program: exporting each by itself takes most of the time."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(f for f, _ in FUNCTIONS.values() if isinstance(f, nn.Module))

    def forward(self, inputs):
        return {name: FUNCTIONS[name][0](*arguments) for name, arguments in inputs.items()}


@pytest.fixture(scope="module")
def answers():
    module, inputs = All().eval(), {name: given for name, (_, given) in FUNCTIONS.items()}
    with torch.no_grad():
        manager = to_edge(torch.export.export(module, (inputs,)))
        for target in ("etx", "executorch"):
            manager.to_executorch(ExecutorchBackendConfig(target=target))
        found = manager.exported_program().module(check_guards=False)(inputs)
        return found, module(inputs)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_runs_on_both_targets(name, answers):
    found, expected = (pytree.tree_leaves(side[name]) for side in answers)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize(
    ("function", "instructions"),
    [(F.hardsigmoid, 2), (F.hardswish, 3), (F.silu, 2), (F.relu6, 1), (torch.exp2, 1)],
)
def test_the_fewest_instructions(function, instructions):
    edge = to_edge(torch.export.export(Calls(function), (torch.randn(3),))).exported_program()
    assert sum(counts(edge).values()) == instructions


@pytest.mark.parametrize("name", ["one", "another"])
def test_operators_composed_since_the_last_lowering_are_decomposed(name):
    """As many are registered each time, under other names."""
    with torch.library._scoped_library("etx_composed", "FRAGMENT") as library:
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, lambda x: x.relu() + 1, "CompositeImplicitAutograd")
        operator = getattr(torch.ops.etx_composed, name)
        edge = to_edge(torch.export.export(Calls(lambda x: operator(x).sum()), (torch.ones(2),)))
    found = {str(node.target) for node in edge.exported_program().graph.nodes}
    assert "aten.relu.default" in found
