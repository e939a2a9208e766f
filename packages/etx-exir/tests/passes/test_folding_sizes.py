# SPDX-License-Identifier: BSD-3-Clause
"""Folding never makes a file larger than its inputs; what it leaves is told with its price."""

from __future__ import annotations

import json

import pytest
import torch
from etx_exir import compile, to_edge
from etx_exir.delegation.explain import at_run_time
from etx_exir.passes import PIPELINE
from etx_exir.passes.simplify.fold_constants import FoldConstants
from etx_schema.cli import main
from flows import FLOWS
from growth import Growth
from programs import Calls, apply, assert_like_eager, core, counts
from torch import nn
from torch.nn import functional as F

WEIGHT = torch.randint(-128, 127, (96, 64), dtype=torch.int8)
SCALE = torch.rand(96, 1)
FLOAT = torch.randn(96, 64)
NAMES = 64
"""Bytes by which names of new constants in `etx/debug` may be longer."""
WITH_CONSTANTS = ("branch_with", "branches_with", "loop_with", "loop_in", "map_with", "recurrent")
ROWS = (torch.randn(3, 64),)


def weight_norm():
    return nn.utils.parametrizations.weight_norm(nn.Linear(64, 96))


def normalised():
    layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3))
    return layers.eval()


IMAGE = (torch.randn(1, 3, 9, 9),)
MODELS = {
    "cast": (Calls(lambda s, x: F.linear(x, s.w.to(x.dtype)), w=WEIGHT), ROWS),
    "cast and scale": (
        Calls(lambda s, x: F.linear(x, s.w.to(x.dtype) * s.k), w=WEIGHT, k=SCALE),
        ROWS,
    ),
    "view, cast, scale": (
        Calls(
            lambda s, x: F.linear(x, s.w.view(96, 64).float() * s.k), w=WEIGHT.flatten(), k=SCALE
        ),
        ROWS,
    ),
    "groups": (
        Calls(
            lambda s, x: F.linear(x, (s.w.view(96, 2, 32).float() * s.k).view(96, 64)),
            w=WEIGHT,
            k=torch.rand(96, 2, 1),
        ),
        ROWS,
    ),
    "half to single": (Calls(lambda s, x: F.linear(x, s.w.float()), w=FLOAT.half()), ROWS),
    "bytes to mask": (Calls(lambda s, x: x.masked_fill(s.m == 0, 0.0), m=WEIGHT[0]), ROWS),
    "mask to bias": (
        Calls(
            lambda s, x: x @ x.t() + torch.where(s.m, 0.0, float("-inf")),
            m=torch.ones(300, 300, dtype=torch.bool).tril(),
        ),
        (torch.randn(300, 4),),
    ),
    "table": (Calls(lambda s, x: x + s.t[s.i], t=torch.randn(7, 64), i=torch.arange(3)), ROWS),
    "long table": (
        Calls(lambda s, x: x + s.t[s.i].sum(0), t=torch.randn(7, 64), i=torch.arange(7).repeat(99)),
        ROWS,
    ),
    "used twice": (Calls(lambda s, x: F.linear(x, s.w) + F.linear(x, s.w.exp()), w=FLOAT), ROWS),
    "tied and turned": (
        Calls(lambda s, x: F.linear(x, s.w) @ s.w + (x.t() * s.w.t()[:, :3]).t(), w=FLOAT),
        ROWS,
    ),
    "one of two is stored": (
        Calls(lambda s, x: F.linear(x, s.w.float()) + F.linear(x, s.w.float().exp()), w=WEIGHT),
        ROWS,
    ),
    "made of nothing": (Calls(lambda x: x + torch.arange(64.0).cos()), ROWS),
    "large, of nothing": (
        Calls(lambda x: x @ x.t() + torch.ones(300, 300).tril()),
        (torch.randn(300, 4),),
    ),
    "small": (Calls(lambda s, x: x * (s.a + 1).exp() + s.a, a=torch.rand(())), ROWS),
    "weight norm": (weight_norm(), ROWS),
    "batch norm": (normalised(), IMAGE),
    "scaled where it is shared": (
        Calls(lambda s, x: F.linear(x, s.w) * 0.5 + F.linear(x, s.w), w=FLOAT),
        ROWS,
    ),
    "lstm": (nn.LSTM(64, 96, batch_first=True), (torch.randn(1, 3, 64),)),
    "attention": (nn.MultiheadAttention(64, 4, batch_first=True), (torch.randn(1, 9, 64),) * 3),
}


def lowered(programs):
    growth = Growth()
    manager = to_edge(programs, observer=growth)
    assert growth.bytes <= 0
    return manager


@pytest.mark.parametrize("name", MODELS)
def test_no_pass_lets_the_file_grow(name):
    module, inputs = MODELS[name]
    program = torch.export.export(module.eval(), inputs)
    manager = lowered(program)
    assert_like_eager(manager.exported_program(), module, inputs)
    without = [item for item in PIPELINE if not isinstance(item, FoldConstants)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("etx_exir.lower.lower.PIPELINE", tuple(without))
        plain = to_edge(program).to_executorch()
    assert len(manager.to_executorch().buffer) <= len(plain.buffer) + NAMES


@pytest.mark.parametrize("name", [name for name in FLOWS if name.startswith(WITH_CONSTANTS)])
def test_no_pass_lets_branches_and_loops_grow(name):
    flow = FLOWS[name]()
    lowered(torch.export.export(flow.module, flow.calls[0], dynamic_shapes=flow.dynamic_shapes))


def test_a_converted_weight_stays_what_it_is():
    module, inputs = MODELS["view, cast, scale"]
    program = core(module, inputs)
    apply(FoldConstants(), program)
    assert counts(program)["aten._to_copy.default"] == 1
    assert len(compile(module, inputs).buffer) < WEIGHT.nbytes + SCALE.nbytes + 8192


def test_masks_of_bytes_are_not_written_out():
    for name in ("mask to bias", "large, of nothing"):
        module, inputs = MODELS[name]
        assert len(compile(module, inputs).buffer) < 300 * 300 + 8192


def test_what_is_used_elsewhere_too_is_computed_at_run_time():
    program = core(*MODELS["used twice"])
    assert not FoldConstants().run(program)


def test_what_alone_is_left_of_a_constant_is_stored():
    module = Calls(lambda s, x: F.linear(x, s.w.exp()) + s.w.exp()[0, 0], w=FLOAT)
    program = core(module, ROWS)
    apply(FoldConstants(), program)
    assert "aten.exp.default" not in counts(program)


class TwoMethods(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(64, 64))

    def plain(self, x):
        return F.linear(x, self.w)

    def exponent(self, x):
        return F.linear(x, self.w.exp())

    def scaled(self, x):
        return F.linear(x, self.w) * 0.25


@pytest.mark.parametrize(
    ("names", "instructions"),
    [(("plain", "exponent"), 1), (("exponent", "exponent"), 0), (("plain", "scaled"), 1)],
)
def test_methods_share_their_weights(names, instructions):
    model, x = TwoMethods(), torch.randn(2, 64)
    programs = {
        f"{i}": torch.export.export(Bound(model, name), (x,)) for i, name in enumerate(names)
    }
    result = to_edge(programs).to_executorch()
    assert len(result.buffer) < model.w.nbytes + 8192
    plans = result.executorch_program.execution_plan
    assert sum(len(p.chains[0].instructions) for p in plans) == 2 + instructions


class Bound(nn.Module):
    """A method of `model` as a module's forward."""

    def __init__(self, model, name):
        super().__init__()
        self.model, self.name = model, name

    def forward(self, x):
        return getattr(self.model, self.name)(x)


def test_explain_tells_what_is_kept_and_what_it_costs(tmp_path, capsys):
    module, inputs = MODELS["view, cast, scale"]
    (row,) = at_run_time(to_edge(torch.export.export(module, inputs)).exported_program())
    convert, scale = row.operators
    assert convert.endswith("._to_dim_order_copy.default")
    assert scale == "aten.mul.Tensor"
    assert set(row.constants) == {"w_view", "k"}
    assert row.saved_bytes == 96 * 64 * 3 - SCALE.nbytes
    assert row.arena_bytes == 2 * 96 * 64 * 4
    path = tmp_path / "weight_only.py"
    path.write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    example_inputs = (torch.ones(2, 64),)\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.register_buffer('w', torch.ones(96, 64, dtype=torch.int8))\n"
        "    def forward(self, x):\n"
        "        return torch.nn.functional.linear(x, self.w.to(x.dtype))\n"
    )
    command = ["compile", f"{path}:Net", "-o", str(tmp_path / "net.pte"), "--explain"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "computed at run time" in text
    assert "18,432 bytes" in text
    assert "weight_only.py:8" in text
    assert main([*command, "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)["methods"]["forward"]["at_run_time"]
    assert [row["saved_bytes"] for row in kept] == [18432]
