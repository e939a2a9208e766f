# SPDX-License-Identifier: BSD-3-Clause
"""Nets drawn from a seed: steps of many kinds, each of which reads what is before it or earlier."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CHANNELS = 8
SIDE = 10
Step = Callable[[Tensor, list[Tensor]], Tensor]
Function = Callable[[Tensor], Tensor]

ACTIVATIONS: tuple[Function, ...] = (
    F.relu,
    F.relu6,
    F.hardtanh,
    F.elu,
    F.silu,
    F.gelu,
    F.hardswish,
    F.hardsigmoid,
    F.mish,
    F.softplus,
    F.selu,
    F.celu,
    F.logsigmoid,
    F.tanhshrink,
    torch.sigmoid,
    torch.tanh,
    torch.abs,
    lambda x: F.leaky_relu(x, 0.1),
    lambda x: F.gelu(x, approximate="tanh"),
    lambda x: F.relu(x, inplace=True),
    lambda x: F.prelu(x, torch.tensor([0.2])),
    lambda x: x.clamp(min=-0.5),
    lambda x: x.clamp(max=0.5),
    lambda x: x.clamp(0.1, 0.7),
)
WRITTEN: tuple[Function, ...] = (
    lambda x: x * torch.sigmoid(x),
    lambda x: x * torch.sigmoid(1.702 * x),
    lambda x: x * F.relu6(x + 3) / 6,
    lambda x: x * torch.tanh(F.softplus(x)),
    lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3))),
    lambda x: torch.exp(-x * x),
    lambda x: (x * x + 1).sqrt(),
    lambda x: x / (1 + x.abs()),
    lambda x: torch.where(x > 0, x, x * 0.5),
    lambda x: x.masked_fill(x > 1, 1.0),
    torch.square,
)
SCALED: tuple[Function, ...] = (
    lambda x: 1 - x,
    lambda x: 2 * x,
    lambda x: x + 0.5,
    lambda x: x / 3,
    torch.neg,
    lambda x: x - x.mean(1, keepdim=True),
    lambda x: x * torch.arange(1, 9.0)[:, None, None] / 8,
    lambda x: x + torch.arange(8.0)[None, :, None, None] / 8,
)
MOVES: tuple[Function, ...] = (
    lambda x: torch.cat(x.chunk(2, 1)[::-1], 1),
    lambda x: x.unflatten(1, (2, 4)).transpose(1, 2).flatten(1, 2),
    lambda x: x.flip(3),
    lambda x: x.roll((1, -1), (2, 3)),
    lambda x: F.pad(x, (1, 1, 0, 0)),
    lambda x: F.pad(x, (1, 0, 0, 1), value=1.0),
    lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    lambda x: F.pad(x, (1, 1, 1, 1), mode="circular"),
    lambda x: torch.stack(x.unbind(1)[::-1], 1),
    lambda x: x.transpose(2, 3),
    lambda x: F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2),
    lambda x: x[:, :, 1:],
    lambda x: torch.cat([x[:, :, ::2], x[:, :, 1::2]], 2),
    lambda x: x.index_select(1, torch.arange(7, -1, -1)),
)
POOLS: tuple[Function, ...] = (
    lambda x: F.max_pool2d(x, 3, 1, 1),
    lambda x: F.avg_pool2d(x, 3, 1, 1),
    lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
    lambda x: F.max_pool2d(x, 2, ceil_mode=True),
    lambda x: F.adaptive_avg_pool2d(x, 4),
    lambda x: F.adaptive_max_pool2d(x, 3),
    lambda x: F.lp_pool2d(x.abs() + 0.1, 2, 2),
)
JOINS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    torch.add,
    torch.sub,
    torch.mul,
    torch.maximum,
    torch.minimum,
    lambda a, b: F.relu(a + b),
    lambda a, b: torch.add(a, b, alpha=2),
)


def settled(norm: nn.Module) -> nn.Module:
    """Give a batch norm what it has after training."""
    assert isinstance(norm, (nn.BatchNorm1d, nn.BatchNorm2d))
    if norm.affine:
        nn.init.uniform_(norm.weight, 0.4, 1.5)
        nn.init.normal_(norm.bias, std=0.3)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.running_mean.normal_(std=0.3)
    norm.running_var.uniform_(0.4, 2)
    return norm


def like(x: Tensor, other: Tensor) -> Tensor:
    """Return `other` in the size of `x`."""
    return other if other.shape == x.shape else F.interpolate(other, size=x.shape[-2:])


class Net(nn.Module):
    """A convolution, three to seven drawn steps, and one of several kinds of result.

    It takes images [N, 3, 10, 10] and indices [N, 4], which half of the nets read.
    """

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.draw, self.layers = draw, nn.ModuleList()
        self.stem, self.shared = (nn.Conv2d(n, CHANNELS, 3, padding=1) for n in (3, CHANNELS))
        self.kinds = [draw.choice(list(KINDS)) for _ in range(draw.randrange(3, 8))]
        self.steps = [KINDS[kind](self) for kind in self.kinds]
        self.result = draw.choice(list(RESULTS))
        self.head, self.table = nn.Linear(CHANNELS, 5), nn.Embedding(10, CHANNELS)
        recurrent = draw.choice((nn.LSTM, nn.GRU))
        self.recurrent = recurrent(CHANNELS, CHANNELS, batch_first=True)
        self.norm = settled(nn.BatchNorm1d(CHANNELS)) if draw.random() < 0.3 else nn.Identity()
        self.reads_indices = draw.random() < 0.5

    def add(self, layer: nn.Module) -> nn.Module:
        """Make `layer` one of the net's."""
        self.layers.append(layer)
        return layer

    def maybe_norm(self, channels: int = CHANNELS) -> Function:
        """Return a batch norm, or nothing."""
        if self.draw.random() < 0.5:
            return nn.Identity()
        return self.add(settled(nn.BatchNorm2d(channels, affine=self.draw.random() < 0.8)))

    def forward(self, x: Tensor, indices: Tensor) -> object:
        x = F.relu(self.stem(x))
        if self.reads_indices:
            x = x + self.table(indices).mean(1)[:, :, None, None]
        history = [x]
        for step in self.steps:
            x = step(x, history)
            if x.shape[-1] > SIDE + 2:
                x = F.avg_pool2d(x, 2)
            history.append(x)
        return RESULTS[self.result](self, x)

    def row(self, x: Tensor) -> Tensor:
        """Return the mean of an image, [N, CHANNELS]."""
        mean: Tensor = self.norm(x.mean((2, 3)))
        return mean


def conv(net: Net) -> Step:
    draw = net.draw
    kernel, dilation = draw.choice((1, 3, 5)), draw.choice((1, 1, 2))
    layer = nn.Conv2d(
        CHANNELS,
        CHANNELS,
        kernel,
        stride=draw.choice((1, 1, 2)),
        padding=kernel // 2 * dilation,
        dilation=dilation,
        groups=draw.choice((1, 1, 2, 4, 8)),
        bias=draw.random() < 0.6,
        padding_mode=draw.choice(("zeros", "zeros", "zeros", "reflect", "circular", "replicate")),
    )
    layers = net.add(layer), net.maybe_norm()
    function = draw.choice((*ACTIVATIONS, *WRITTEN, *[nn.Identity()] * 20))

    def step(x: Tensor, history: list[Tensor]) -> Tensor:
        small = min(x.shape[2:]) <= 4  # less than the padding that reflects
        return x if small else function(layers[1](layers[0](x)))

    return step


def transposed(net: Net) -> Step:
    kernel, groups = net.draw.choice((2, 3, 4)), net.draw.choice((1, 2, 8))
    layer = net.add(nn.ConvTranspose2d(CHANNELS, CHANNELS, kernel, 2, 1, groups=groups))
    norm = net.maybe_norm()
    return lambda x, history: norm(layer(x))


def batch_norm(net: Net) -> Step:
    norm = net.add(settled(nn.BatchNorm2d(CHANNELS)))
    function = net.draw.choice((F.relu, F.silu, nn.Identity()))
    return lambda x, history: function(norm(x))


def other_norm(net: Net) -> Step:
    norms = (lambda: nn.GroupNorm(2, CHANNELS), lambda: nn.InstanceNorm2d(CHANNELS, affine=True))
    norm = net.add(net.draw.choice(norms)())
    return lambda x, history: norm(x) if min(x.shape[2:]) > 1 else x


def join(net: Net) -> Step:
    layer, norm = net.add(nn.Conv2d(2 * CHANNELS, CHANNELS, 1)), net.maybe_norm(2 * CHANNELS)
    place = net.draw.random()

    def step(x: Tensor, history: list[Tensor]) -> Tensor:
        other = like(x, history[int(place * len(history))])
        result: Tensor = layer(F.relu(norm(torch.cat([x, other], 1))))
        return result

    return step


def residual(net: Net) -> Step:
    place, function = net.draw.random(), net.draw.choice(JOINS)
    return lambda x, history: function(x, like(x, history[int(place * len(history))]))


def gate(net: Net) -> Step:
    squeeze, excite = net.add(nn.Conv2d(CHANNELS, 4, 1)), net.add(nn.Conv2d(4, CHANNELS, 1))
    of_one, act = net.draw.choice((torch.sigmoid, F.hardsigmoid)), net.draw.choice((F.relu, F.silu))
    means: tuple[Function, ...] = (
        lambda x: x.mean((2, 3), keepdim=True),
        lambda x: F.adaptive_avg_pool2d(x, 1),
    )
    mean = net.draw.choice(means)
    return lambda x, history: x * of_one(excite(act(squeeze(mean(x)))))


def attention(net: Net) -> Step:
    layer = net.add(nn.MultiheadAttention(CHANNELS, 2, batch_first=True))
    norm = net.add(nn.LayerNorm(CHANNELS)) if net.draw.random() < 0.5 else nn.Identity()

    def step(x: Tensor, history: list[Tensor]) -> Tensor:
        rows = x.flatten(2).transpose(1, 2)
        normed = norm(rows)
        seen = layer(normed, normed, normed, need_weights=False)[0]
        return (rows + seen).transpose(1, 2).reshape(x.shape)

    return step


def perceptron(net: Net) -> Step:
    wide, narrow = net.add(nn.Linear(CHANNELS, 16)), net.add(nn.Linear(16, CHANNELS))
    norm, function = net.add(nn.LayerNorm(CHANNELS)), net.draw.choice((*ACTIVATIONS, *WRITTEN))

    def step(x: Tensor, history: list[Tensor]) -> Tensor:
        return x + narrow(function(wide(norm(x.permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)

    return step


def resized(net: Net) -> Step:
    mode = net.draw.choice(("nearest", "nearest-exact", "bilinear", "bicubic"))
    corners = net.draw.choice((None, True)) if mode == "bilinear" else None
    return lambda x, history: F.interpolate(
        x[:, :, :6, :6], scale_factor=2, mode=mode, align_corners=corners
    )


def shared(net: Net) -> Step:
    norm = net.maybe_norm()
    return lambda x, history: norm(net.shared(x))


def of(functions: tuple[Function, ...], least: int = 1) -> Callable[[Net], Step]:
    """Return a kind of step that applies one of `functions` to images of at least that side."""

    def step(net: Net) -> Step:
        function = net.draw.choice(functions)
        return lambda x, history: function(x) if min(x.shape[2:]) >= least else x

    return step


KINDS: dict[str, Callable[[Net], Step]] = {
    "conv": conv,
    "another conv": conv,
    "one more conv": conv,
    "transposed": transposed,
    "batch norm": batch_norm,
    "other norm": other_norm,
    "join": join,
    "residual": residual,
    "gate": gate,
    "attention": attention,
    "perceptron": perceptron,
    "resized": resized,
    "pool": of(POOLS, 4),
    "activation": of(ACTIVATIONS),
    "written function": of(WRITTEN),
    "scaled": of(SCALED),
    "move": of(MOVES, 2),
    "shared": shared,
}


def rows(net: Net, x: Tensor) -> Tensor:
    """Return at most six pixels as rows, [N, 6, CHANNELS]."""
    return x.flatten(2).transpose(1, 2)[:, :6]


RESULTS: dict[str, Callable[[Net, Tensor], object]] = {
    "image": lambda net, x: x,
    "vector": lambda net, x: net.head(net.row(x)),
    "both": lambda net, x: (x, net.head(net.row(x))),
    "named": lambda net, x: {"a": net.head(net.row(x)), "b": [x.argmax(1), net.row(x)]},
    "recurrent": lambda net, x: net.head(net.recurrent(rows(net, x))[0]),
    "tokens": lambda net, x: net.head(x.flatten(2).transpose(1, 2)).softmax(-1),
}
