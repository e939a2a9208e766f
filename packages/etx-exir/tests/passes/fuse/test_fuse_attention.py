# SPDX-License-Identifier: BSD-3-Clause
"""Attention of any spelling is one operator for target etx, and stays several for ExecuTorch's."""

import math

import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_schema import read_pte
from on_device import Function, assert_same, export, on_device, operators
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

torch.manual_seed(0)
B, H, M, L, E = 2, 4, 6, 9, 8
Q, K, V = torch.randn(B, H, M, E), torch.randn(B, H, L, E), torch.randn(B, H, L, E)
SHARED = torch.randn(B, 2, L, E)
ADDED, SEEN = torch.randn(B, 1, 1, L), torch.rand(B, 1, M, L) > 0.4
HIDES = torch.where(torch.rand(M, L) > 0.6, 0.0, -math.inf)
ROWS = (Q[:, 0], K[:, 0], V[:, 0])
SIDE = torch.randn(B, L, H * E)
attention = F.scaled_dot_product_attention
NAME = "etx::attention.out"


def by_hand(q, k, v, mask=None, scale=E**-0.5):
    scores = q @ k.transpose(-1, -2) * scale
    return (scores if mask is None else scores + mask).softmax(-1) @ v


def filled(q, k, v, seen):
    return (q @ k.transpose(-2, -1)).masked_fill(~seen, -math.inf).softmax(-1) @ v


def repeated(q, k, v, mask=None, dims=1):
    """Repeat keys and values for the heads that share them, as models do by hand."""
    if dims == 2:
        k, v = (t.repeat_interleave(2, 1) for t in (k, v))
    else:
        k, v = (t[:, :, None].expand(B, 2, 2, L, E).reshape(B, H, L, E) for t in (k, v))
    return attention(q, k, v, mask)


def of_heads(x, y):
    q, k, v = (t.view(B, -1, H, E).transpose(1, 2) for t in (x, y, y * 2))
    return attention(q, k, v).transpose(1, 2).reshape(B, -1, H * E)


FUSED = {
    "plain": (attention, (Q, K, V)),
    "added": (attention, (Q, K, V, ADDED)),
    "added, hides": (attention, (Q, K, V, HIDES)),
    "seen": (attention, (Q, K, V, SEEN)),
    "causal": (lambda *x: attention(*x, is_causal=True), (Q, K, V)),
    "causal, more rows": (lambda *x: attention(*x, is_causal=True), (K, Q, Q)),
    "shared": (lambda *x: attention(*x, enable_gqa=True), (Q, SHARED, SHARED)),
    "shared, causal": (
        lambda *x: attention(*x, is_causal=True, enable_gqa=True),
        (Q, SHARED, SHARED),
    ),
    "shared, seen": (lambda *x: attention(*x, enable_gqa=True), (Q, SHARED, SHARED, SEEN)),
    "repeated": (repeated, (Q, SHARED, SHARED)),
    "repeated, seen": (repeated, (Q, SHARED, SHARED, SEEN)),
    "repeated, one row": (repeated, (Q[:, :, :1], SHARED, SHARED, ADDED)),
    "interleaved": (lambda *x: repeated(*x, dims=2), (Q, SHARED, SHARED, ADDED)),
    "one key": (attention, (Q, K[:, :, :1], V[:, :, :1])),
    "one row": (attention, (Q[:, :, :1], K, V, ADDED)),
    "values of another width": (attention, (Q, K, V[..., :5])),
    "by hand": (by_hand, (Q, K, V)),
    "by hand, divided": (lambda q, k, v: by_hand(q / 3, k, v, None, 1.0), (Q, K, V)),
    "by hand, added": (by_hand, (Q, K, V, ADDED)),
    "by hand, of rows": (by_hand, ROWS),
    "by hand, filled": (filled, (Q, K, V, SEEN[:1] | (torch.arange(L) == 0))),
    "mask first": (lambda q, k, v, m: (m + q @ k.mT).softmax(-1) @ v, (Q, K, V, ADDED)),
    "of heads": (of_heads, (SIDE, SIDE)),
    "encoder": (nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (SIDE,)),
}
LEFT = {
    "weights are returned": lambda q, k, v: [w := (q @ k.mT).softmax(-1), w @ v],
    "scores are returned": lambda q, k, v: [s := q @ k.mT, s.softmax(-1) @ v],
    "the mask is scaled": lambda q, k, v: ((q @ k.mT + 1.5) * 2).softmax(-1) @ v,
    "over the rows": lambda q, k, v: (q @ k.mT).softmax(-2) @ v,
    "keys are as they lie": lambda q, k, v: (q @ k.reshape(B, H, E, L)).softmax(-1) @ v,
    "a tanh between": lambda q, k, v: (q @ k.mT).tanh().softmax(-1) @ v,
    "other batches": lambda q, k, v: (
        (q @ k.mT).flatten(0, 1).softmax(-1).view(H, B * M, L) @ v.flatten(0, 1)[:H]
    ),
    "float64": lambda q, k, v: (q.double() @ k.double().mT).softmax(-1) @ v.double(),
}


@pytest.mark.parametrize("case", FUSED)
def test_is_one_operator(case):
    function, inputs = FUSED[case]
    program = export(function, inputs)
    edge = to_edge(program)
    ours = edge.to_executorch()
    theirs = edge.to_executorch(ExecutorchBackendConfig(target="executorch"))
    assert operators(ours.buffer).count(NAME) == 1
    assert not {"aten::bmm.out", "aten::_softmax.out"} & set(operators(ours.buffer))
    assert NAME not in operators(theirs.buffer)
    module = function if isinstance(function, nn.Module) else Function(function)
    with torch.no_grad():
        expected = module.eval()(*inputs)
    for manager in (ours, theirs):
        assert_same(etx_runtime.load(manager.buffer)(*on_device(inputs)), expected)


@pytest.mark.parametrize("case", ["repeated", "repeated, seen", "repeated, one row"])
def test_keys_that_heads_share_are_not_repeated(case):
    function, inputs = FUSED[case]
    buffer = to_edge(export(function, inputs)).to_executorch().buffer
    assert not any("expand" in name or "repeat" in name for name in operators(buffer))


@pytest.mark.parametrize("case", LEFT)
def test_is_left(case):
    program = export(LEFT[case], (Q, K, V))
    manager = to_edge(program).to_executorch()
    assert NAME not in operators(manager.buffer)
    assert_same(etx_runtime.load(manager.buffer)(*on_device((Q, K, V))), LEFT[case](Q, K, V))


def test_sizes_may_change():
    dims = [{0: Dim("b", max=5), 2: Dim(n, max=12)} for n in ("rows", "keys")]
    shapes = {"args": (dims[0], dims[1], dims[1], {0: dims[0][0], 3: dims[1][2]})}
    manager = to_edge(export(attention, (Q, K, V, ADDED), dynamic_shapes=shapes)).to_executorch()
    assert operators(manager.buffer).count(NAME) == 1
    model = etx_runtime.load(manager.buffer)
    for b, m, n in ((2, 6, 9), (5, 12, 12), (1, 1, 3)):
        q, k = torch.randn(b, H, m, E), torch.randn(b, H, n, E)
        mask = torch.randn(b, 1, 1, n)
        assert_same(model(*on_device((q, k, k, mask))), attention(q, k, k, mask))


def test_sizes_of_shared_keys_may_change():
    def function(q, k, v, mask):
        b, h, n, e = k.shape
        k, v = (t[:, :, None].expand(b, h, 2, n, e).reshape(b, 2 * h, n, e) for t in (k, v))
        return attention(q, k, v, mask)

    batch, rows, keys = Dim("b", max=5), Dim("rows", max=12), Dim("keys", max=12)
    shared = {0: batch, 2: keys}
    shapes = {"args": ({0: batch, 2: rows}, shared, shared, {0: batch, 3: keys})}
    inputs = (Q, SHARED, SHARED * 2, ADDED)
    buffer = to_edge(export(function, inputs, dynamic_shapes=shapes)).to_executorch().buffer
    assert NAME in operators(buffer)
    assert "aten::expand_copy.out" not in operators(buffer)
    model = etx_runtime.load(buffer)
    for b, m, n in ((2, 6, 9), (5, 12, 12), (1, 1, 3)):
        q, k, v = torch.randn(b, H, m, E), torch.randn(b, 2, n, E), torch.randn(b, 2, n, E)
        mask = torch.randn(b, 1, 1, n)
        assert_same(model(*on_device((q, k, v, mask))), function(q, k, v, mask))


def test_what_no_row_sees_has_no_effect():
    k, v = K.clone(), V.clone()
    k[:, :, 7:], v[:, :, 7:] = math.nan, math.inf
    seen = (torch.arange(L) < 7).expand(B, 1, M, L).contiguous()
    model = etx_runtime.load(to_edge(export(filled, (Q, K, V, seen))).to_executorch().buffer)
    assert_same(model(*on_device((Q, k, v, seen))), filled(Q, K, V, seen))


def test_a_row_that_sees_nothing_is_what_eager_says():
    seen = SEEN.clone()
    seen[0, 0, 2] = False
    assert attention(Q, K, V, seen)[0, 0, 2].abs().max() == 0
    for function in (attention, filled):
        model = etx_runtime.load(to_edge(export(function, (Q, K, V, SEEN))).to_executorch().buffer)
        assert_same(model(*on_device((Q, K, V, seen))), function(Q, K, V, seen))


def test_scores_of_long_sequences_are_not_planned():
    q, k = torch.randn(1, 12, 4096, 64), torch.randn(1, 12, 4096, 64)
    edge = to_edge(export(lambda *x: attention(*x, is_causal=True), (q, k, k)))
    (plan,) = read_pte(edge.to_executorch().buffer).program.execution_plan
    assert sum(plan.non_const_buffer_sizes) <= 64 << 20
