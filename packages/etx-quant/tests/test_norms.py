# SPDX-License-Identifier: BSD-3-Clause
"""Batch norms, wherever they are: the model is what it was, and nothing of it stays in float."""

from __future__ import annotations

import copy
from collections.abc import Callable

import etx_runtime
import pytest
import torch
from etx_exir import to_edge
from etx_quant import compare, finish_training, prepare_training, quantize
from torch import Tensor, nn
from torch.nn import functional as F


class Net(nn.Module):
    """Layers ``a`` and ``b``, norms ``m`` and ``n``, and what ``forward`` makes of them."""

    def __init__(self, a: nn.Module, m: nn.Module, run: Callable[[Net, Tensor], Tensor]) -> None:
        super().__init__()
        self.a, self.b, self.run = copy.deepcopy(a), nn.Conv2d(16, 8, 3), run
        self.m, self.n = (settled(copy.deepcopy(m)) for _ in "mn")

    def forward(self, x: Tensor) -> Tensor:
        return self.run(self, x)


def settled(norm: nn.Module) -> nn.Module:
    """Give a norm what it has after training."""
    assert isinstance(norm, (nn.BatchNorm1d, nn.BatchNorm2d))
    if norm.affine:
        nn.init.uniform_(norm.weight, 0.3, 2)
        nn.init.normal_(norm.bias)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.3, 3)
    return norm


def row(x: Tensor) -> Tensor:
    return x.mean((2, 3))


CONV, LINEAR = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 8)
OF_IMAGES, OF_ROWS = nn.BatchNorm2d(8), nn.BatchNorm1d(8)
NETS: dict[str, Callable[[], Net]] = {
    "read twice": lambda: Net(CONV, OF_IMAGES, lambda s, x: s.m(y := s.a(x)) + y),
    "two of one call": lambda: Net(CONV, OF_IMAGES, lambda s, x: s.m(y := s.a(x)) + s.n(y)),
    "two of one layer": lambda: Net(CONV, OF_IMAGES, lambda s, x: s.m(s.a(x)) + s.n(s.a(x))),
    "shared by two calls": lambda: Net(CONV, OF_IMAGES, lambda s, x: s.m(s.a(F.relu(s.m(s.a(x)))))),
    "of one of two calls": lambda: Net(CONV, OF_IMAGES, lambda s, x: s.m(s.a(F.relu(s.a(x))))),
    "behind a relu": lambda: Net(CONV, OF_IMAGES, lambda s, x: s.m(F.relu(s.a(x)))),
    "behind a join": lambda: Net(
        CONV, nn.BatchNorm2d(16), lambda s, x: s.b(F.relu(s.m(torch.cat([x, s.a(x)], 1))))
    ),
    "of another epsilon": lambda: Net(CONV, nn.BatchNorm2d(8, 0.5), lambda s, x: s.m(s.a(x))),
    "without a weight": lambda: Net(
        CONV, nn.BatchNorm2d(8, 1e-3, affine=False), lambda s, x: s.m(s.a(x))
    ),
    "behind a transposed layer in groups": lambda: Net(
        nn.ConvTranspose2d(8, 8, 3, groups=2), OF_IMAGES, lambda s, x: s.m(s.a(x))
    ),
    "behind a computed weight": lambda: Net(
        nn.utils.parametrizations.weight_norm(nn.Conv2d(8, 8, 3)),
        OF_IMAGES,
        lambda s, x: s.m(s.a(x)),
    ),
    "of an input": lambda: Net(CONV, nn.BatchNorm2d(8, affine=False), lambda s, x: s.a(s.m(x))),
    "of a row": lambda: Net(LINEAR, OF_ROWS, lambda s, x: s.m(s.a(row(x)))),
    "of a row behind a relu": lambda: Net(LINEAR, OF_ROWS, lambda s, x: s.m(F.relu(s.a(row(x))))),
    "of a row read twice": lambda: Net(LINEAR, OF_ROWS, lambda s, x: s.m(y := s.a(row(x))) + y),
    "of rows in lines": lambda: Net(
        LINEAR, OF_ROWS, lambda s, x: s.m(s.a(x.flatten(2).transpose(1, 2)[:, :8]))
    ),
    "transposed in groups": lambda: Net(
        nn.ConvTranspose2d(8, 4, 3, groups=2), nn.BatchNorm2d(4), lambda s, x: s.m(s.a(x)).relu()
    ),
}


def calls() -> list[tuple[Tensor]]:
    return [(torch.randn(2, 8, 9, 9),) for _ in range(3)]


@pytest.fixture(params=NETS)
def net(request: pytest.FixtureRequest) -> Net:
    torch.manual_seed(0)
    return NETS[request.param]().eval()


def test_integers_say_what_float_does(net: Net) -> None:
    batches, before = calls(), copy.deepcopy(net)
    quantized = quantize(net, batches)
    assert all(
        torch.equal(x, y) for x, y in zip(net.parameters(), before.parameters(), strict=True)
    )
    assert compare(before, quantized, batches).sqnr > 33
    manager = to_edge(torch.export.export(quantized, batches[0])).to_executorch()
    device = etx_runtime.load(manager.buffer, outputs="torch")
    assert compare(quantized, device, batches).sqnr > 38
    nodes = manager.exported_program().graph_module.graph.nodes
    values = [n.meta.get("val") for n in nodes if n.op == "call_function"]
    assert sum(isinstance(x, Tensor) and x.is_floating_point() for x in values) <= 1


TRAINED = {
    "of three calls": lambda: Net(
        CONV, OF_IMAGES, lambda s, x: s.m(s.a(F.relu(s.m(s.a(x))))) + s.n(s.a(x))
    ),
    **{name: make for name, make in NETS.items() if "epsilon" in name or "weight" in name},
    "behind a transposed layer": NETS["behind a transposed layer in groups"],
}


@pytest.mark.parametrize("name", TRAINED)
def test_training_ends_with_the_norms_of_the_model(name: str) -> None:
    torch.manual_seed(0)
    net = TRAINED[name]().eval()
    batches = calls()
    training = prepare_training(copy.deepcopy(net), batches[0])
    training.eval()  # the statistics are settled: only ranges are learnt
    for batch in batches:
        training(*batch)
    assert compare(net, finish_training(training), batches).sqnr > 30


class Volumes(nn.Module):
    """Convolutions of three dimensions, which stay float, before a linear layer, which does not."""

    def __init__(self, layer: nn.Module, run: Callable[[Volumes, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.run, self.head = layer, run, nn.Linear(4, 4)
        self.m, self.n = nn.BatchNorm3d(4), nn.BatchNorm3d(4)
        for norm in (self.m, self.n):
            assert norm.running_mean is not None
            assert norm.running_var is not None
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.2, 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.run(self, x).transpose(1, -1))


@pytest.mark.parametrize("layer", [nn.Conv2d(8, 8, 3), nn.ConvTranspose2d(8, 8, 3, groups=4)])
@pytest.mark.parametrize("affine", [True, False])
def test_norms_without_statistics(layer: nn.Module, affine: bool) -> None:
    norm = nn.BatchNorm2d(8, affine=affine, track_running_stats=False)
    net = nn.Sequential(copy.deepcopy(layer), norm, nn.ReLU()).eval()
    batches = [(torch.randn(2, 8, 6, 6),) for _ in range(2)]
    assert compare(net, quantize(net, batches), batches).sqnr > 30


@pytest.mark.parametrize(
    "run",
    [
        lambda s, x: s.m(s.a(x)),
        lambda s, x: s.n(s.a(F.relu(s.m(s.a(x))))),
        lambda s, x: s.m(y := s.a(x)) + y,
        lambda s, x: s.m(y := s.a(x)) + s.n(y),
    ],
    ids=["once", "two of one layer", "read twice", "two of one call"],
)
@pytest.mark.parametrize(
    "layer",
    [nn.Conv3d(4, 4, 3, padding=1), nn.ConvTranspose3d(4, 4, 3, padding=1, groups=2)],
    ids=["conv", "transposed"],
)
def test_norms_of_volumes(layer: nn.Module, run: Callable[[Volumes, Tensor], Tensor]) -> None:
    net = Volumes(copy.deepcopy(layer), run).eval()
    batches = [(torch.randn(2, 4, 4, 4, 4),) for _ in range(2)]
    assert compare(net, quantize(net, batches), batches).sqnr > 30
