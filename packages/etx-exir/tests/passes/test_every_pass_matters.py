# SPDX-License-Identifier: BSD-3-Clause
"""For every pass a small program that is larger, or no Edge program, without it."""

import pytest
import torch
from etx_exir.errors import EtxError
from etx_exir.ir.constants import Constants
from etx_exir.lower.copy_program import copy_program
from etx_exir.lower.decompose import decompose
from etx_exir.lower.lower import run_passes
from etx_exir.lower.verify import Dialect, verify
from etx_exir.passes import PIPELINE
from programs import Calls, Masked, assert_like_eager, counts
from quantized_programs import Table, Weight
from torch import nn
from torch.nn import functional as F

KINDS = {item.name: type(item) for item in PIPELINE}
IMAGE = torch.randn(1, 3, 8, 8)
BATCH = torch.export.Dim("batch", min=1, max=16)


def attention(x):
    return F.scaled_dot_product_attention(x, x, x)


def write(self, x, position):
    self.cache[:, position] = x
    return self.cache * 1.5


def norm(layers):
    return nn.Sequential(*layers)


REMOVES = {
    "absorb_batch_norm": (norm([nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3)]), (IMAGE,)),
    "crop_kernels": (nn.Conv2d(3, 4, 3, padding=9, dilation=9), (IMAGE,)),
    "drop_expands": (Calls(lambda x: x / x.sum(-1, keepdim=True).expand_as(x)), (IMAGE,)),
    "fold_constants": (Calls(lambda self, x: x + self.w.exp(), w=torch.ones(3)), (torch.ones(3),)),
    "fold_scale": (
        Calls(lambda self, x: F.linear(x, self.w) * 2, w=torch.eye(3)),
        (IMAGE[..., :3],),
    ),
    "forward_parts": (Calls(lambda x: torch.cat([x, x.exp()])[0] * 2), (torch.ones(1, 3),)),
    "fuse_batch_norm": (norm([nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)]), (IMAGE,)),
    "linear_from_products": (Calls(lambda x: x @ x.exp().t()), (torch.ones(2, 3),)),
    "common_subexpressions": (Calls(lambda x: x.exp() * 2 + x.exp()), (IMAGE,)),
    "merge_copies": (Calls(lambda x: x.double().float() + 1), (IMAGE,)),
    "merge_views": (Calls(lambda x: x.view(3, 64).view(8, 24) * 2), (IMAGE,)),
    "move_permutes": (Calls(lambda x: (x.mT + 1).mT * 2), (IMAGE,)),
    "remove_asserts": (
        Calls(lambda self, x: F.linear(x, self.w).to(torch.float32) * 2, w=torch.eye(8)),
        (IMAGE,),
    ),
    "remove_dead_code": (Calls(lambda self, x: (x + 1, x * self.w)[0], w=torch.ones(8)), (IMAGE,)),
    "remove_noops": (Calls(lambda x: x.clone().expand_as(x) * 2), (IMAGE,)),
    "scalar_operands": (Calls(lambda self, x: x * self.c, c=torch.tensor(2.5)), (IMAGE,)),
    "share_constants": (Masked(persistent=False), (IMAGE,)),
}
REPLACES = {
    "add_bias": (
        Calls(lambda self, x: F.linear(x, self.w, self.w[:1]), w=torch.eye(3)),
        (IMAGE[0, 0, :, :3],),
    ),
    "align_index_put": (
        Calls(write, cache=torch.zeros(1, 8, 3)),
        (torch.randn(2, 3), torch.tensor([1, 4])),
    ),
    "expand_powers": (Calls(lambda x: x**2), (IMAGE,)),
    "fuse_embedding": (Table(Weight(10, 24)), (torch.tensor([1, 9, 0]),)),
    "linear_of_vectors": (
        Calls(lambda self, x: F.linear(x, self.w), w=torch.eye(3)),
        (IMAGE[0, 0, 0, :3],),
    ),
    "plain_extremes": (Calls(lambda x: x.max(1)[0]), (IMAGE,)),
    "resize_bytes": (
        Calls(lambda x: F.interpolate(x, (3, 5), mode="bilinear")),
        (torch.full((1, 3, 8, 8), 7, dtype=torch.uint8),),
    ),
    "roll_flat": (Calls(lambda x: x.roll(2)), (IMAGE,)),
    "split_dynamic": (Calls(lambda x: x.split(2, 1)), (torch.randn(3, 5),), (({0: BATCH},),)),
}
INVALID = {
    "copy_views": (Calls(lambda x: x.view(3, 64) + 1), (IMAGE,)),
    "set_dim_order": (Calls(lambda x: x.to(memory_format=torch.channels_last) + 1), (IMAGE,)),
}
ELSEWHERE = {"delay_constants", "lower_attention", "normalize_strides", "widen_selections"}
"""Their own tests: no target has attention whole; strides and bounds are part of no operator."""


def lowered(program, passes):
    result = copy_program(program)
    run_passes(result, passes)
    return result


def size(program):
    return sum(counts(program).values()), sum(t.nbytes for _, t in Constants(program).items())


def both(module, inputs, name, shapes=None):
    """Return the program after the pipeline, and after it without the pass."""
    program = decompose(torch.export.export(module.eval(), inputs, dynamic_shapes=shapes))
    full = lowered(program, PIPELINE)
    verify(full, Dialect.EDGE)
    assert_like_eager(full, module, inputs, tolerance=1e-4)
    return full, lowered(program, [item for item in PIPELINE if item.name != name])


def test_every_pass_has_a_program():
    assert set(KINDS) == {*REMOVES, *REPLACES, *INVALID, *ELSEWHERE}


@pytest.mark.parametrize("name", REMOVES)
def test_pass_removes_operators_or_constants(name):
    full, without = both(*REMOVES[name], name)
    assert all(a <= b for a, b in zip(size(full), size(without), strict=True))
    assert size(full) != size(without)


@pytest.mark.parametrize("name", REPLACES)
def test_pass_replaces_operators(name):
    module, inputs, *shapes = REPLACES[name]
    full, without = both(module, inputs, name, *shapes)
    assert counts(full) != counts(without)


@pytest.mark.parametrize("name", INVALID)
def test_without_the_pass_the_program_is_refused(name):
    _, without = both(*INVALID[name], name)
    with pytest.raises(EtxError):
        verify(without, Dialect.EDGE)
