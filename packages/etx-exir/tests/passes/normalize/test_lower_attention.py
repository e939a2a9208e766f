# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from programs import Calls, assert_like_eager, counts, edge
from torch.nn.functional import scaled_dot_product_attention as attention


def heads(length, count=4, width=8):
    return torch.randn(2, count, length, width)


def masked_row(mask):
    mask[1] = False
    return mask


MASKS = {
    "none": None,
    "bool": torch.ones(5, 6, dtype=torch.bool).tril(),
    "row without anything": masked_row(torch.ones(5, 6, dtype=torch.bool)),
    "float": torch.randn(2, 1, 5, 6),
    "float with -inf": torch.zeros(5, 6).masked_fill(
        ~masked_row(torch.ones(5, 6, dtype=torch.bool)), float("-inf")
    ),
}


def test_masks():
    module = Calls(lambda q, k, v, masks: [attention(q, k, v, attn_mask=m) for m in masks])
    inputs = (heads(5), heads(6), heads(6), list(MASKS.values()))
    program = edge(module, inputs)
    assert counts(program)["aten._softmax.default"] == len(MASKS)
    assert_like_eager(program, module, inputs)


def test_nothing_guards_rows_that_always_see_something():
    module = Calls(lambda q, k, v: attention(q, k, v, is_causal=True))
    inputs = (heads(5), heads(5), heads(5))
    program = edge(module, inputs)
    assert "aten.where.self" not in counts(program)
    assert "aten.any.dim" not in counts(program)
    assert_like_eager(program, module, inputs)


def test_a_mask_that_is_provably_finite_needs_no_guard():
    def function(q, k, v, m):
        return attention(q, k, v, attn_mask=(1.0 - m.to(torch.float32))[:, None, None] * -1e9)

    module, inputs = Calls(function), (heads(5), heads(6), heads(6), torch.ones(2, 6).long())
    program = edge(module, inputs)
    assert "aten.any.dim" not in counts(program)
    assert_like_eager(program, module, inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_scores_keep_their_digits(dtype):
    module = Calls(lambda q, k, v, m: [attention(q, k, v), attention(q, k, v, attn_mask=m)])
    q, k, v = (torch.randn(2, 4, 6, 8) * size for size in (6, 6, 1))
    inputs = tuple(x.to(dtype) for x in (q, k, v, torch.randn(6, 6)))
    found = edge(module, inputs).module()(*inputs)
    for actual, expected in zip(found, module(*(x.double() for x in inputs)), strict=True):
        assert actual.dtype == dtype
        bound = torch.finfo(dtype).eps
        torch.testing.assert_close(actual.double(), expected, rtol=bound, atol=bound)


def test_shared_key_heads():
    def function(q, k, v, masks):
        return [attention(q, k, v, attn_mask=m, enable_gqa=True) for m in masks]

    masks = [None, torch.randn(5, 6), torch.randn(2, 4, 5, 6), torch.randn(2, 1, 5, 6)]
    inputs = (heads(5), heads(6, 2), heads(6, 2), masks)
    program = edge(Calls(function), inputs)
    assert "aten.expand_copy.default" not in counts(program)
    assert_like_eager(program, Calls(function), inputs)


def test_symbolic_length():
    module = Calls(lambda q, k, v: attention(q, k, v, scale=0.3))
    length = torch.export.Dim("length", min=1, max=16)
    shapes = (({2: length},) * 3,)
    inputs = (heads(5), heads(5), heads(5))
    program = edge(module, inputs, shapes)
    assert "aten.sym_size.int" not in counts(program)
    assert_like_eager(program, module, inputs, (heads(9), heads(9), heads(9)))


def test_three_dimensions():
    module, inputs = Calls(attention), tuple(torch.randn(3, 5, 8) for _ in range(3))
    assert_like_eager(edge(module, inputs), module, inputs)


BATCHES = {
    "keys of higher rank": ((4,), (2, 4), (2, 4)),
    "queries of higher rank": ((2, 4), (4,), (4,)),
    "one matrix of queries": ((), (2,), (2,)),
    "one query for all": ((2, 1), (4,), (4,)),
    "one key for all heads": ((2, 4), (2, 1), (2, 1)),
    "one key for all heads, values apart": ((2, 4), (2, 1), (2, 4)),
    "values of one head": ((2, 4), (2, 4), (2, 1)),
    "values of more batches": ((1, 4), (1, 4), (3, 4)),
}


def test_batches_that_broadcast():
    def function(cases, mask):
        return [attention(q, k, v, attn_mask=m) for q, k, v in cases for m in (None, mask)]

    def drawn(query, key, value):
        return torch.randn(*query, 5, 8), torch.randn(*key, 6, 8), torch.randn(*value, 6, 7)

    inputs = ([drawn(*case) for case in BATCHES.values()], torch.randn(5, 6))
    assert_like_eager(edge(Calls(function), inputs), Calls(function), inputs)


def test_heads_that_share_one_key_are_its_rows():
    module, inputs = Calls(attention), (heads(5), heads(6, 1), heads(6, 1))
    program = edge(module, inputs)
    assert "aten.expand_copy.default" not in counts(program)
    assert_like_eager(program, module, inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_dropout_leaves_out_weights_and_scales_the_others(dtype):
    module = Calls(lambda q, k, v: attention(q, k, v, dropout_p=0.25))
    q, k = torch.zeros(2, 1, 40, 8, dtype=dtype), torch.zeros(2, 1, 50, 8, dtype=dtype)
    v = torch.eye(50, dtype=dtype).expand(2, 1, 50, 50)
    left = edge(module, (q, k, v)).module(check_guards=False)(q, k, v)
    assert left.dtype == dtype
    kept = left.float() * 50
    assert ((kept == 0) | ((kept - 4 / 3).abs() < 1e-2)).all()
    assert 0.7 < (kept != 0).float().mean() < 0.8
