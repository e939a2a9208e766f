# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.ir.provenance import DECLINED
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import counts
from quantized_programs import (
    Quantized,
    Weight,
    assert_one_step,
    float_operators,
    fused,
    integer_operators,
    on_device,
    rounded,
)
from torch.nn import functional as F

SEEDED = torch.Generator().manual_seed(0)
IMAGE = torch.randn(2, 6, 9, 7, generator=SEEDED)
ROWS = torch.randn(3, 5, 10, generator=SEEDED)


def conv(**kwargs):
    return lambda x, w, b: F.conv2d(x, w, b, **kwargs)


def pool(**kwargs):
    return lambda x: F.avg_pool2d(x, 3, **kwargs)


def bilinear(**kwargs):
    return lambda x: F.interpolate(x, mode="bilinear", **kwargs)


ONE = {
    "linear": (F.linear, Weight(4, 10), 4, [ROWS], "quantized_linear"),
    "linear of one scale": (F.linear, Weight(4, 10, axis=None), None, [ROWS], "quantized_linear"),
    "conv": (conv(padding=1, stride=2), Weight(5, 6, 3, 2), 5, [IMAGE], "quantized_conv"),
    "conv in groups": (conv(groups=3), Weight(9, 2, 2, 2), 9, [IMAGE], "quantized_conv"),
    "depthwise": (
        conv(groups=6, padding=(1, 2), dilation=2),
        Weight(6, 1, 3, 3),
        6,
        [IMAGE],
        "quantized_depthwise_conv",
    ),
    "depthwise of two": (conv(groups=6), Weight(12, 1, 3, 3), 12, [IMAGE], "quantized_conv"),
    "conv1d": (
        lambda x, w, b: F.conv1d(x, w, b, padding=2, stride=2),
        Weight(4, 5, 3),
        4,
        [ROWS],
        "quantized_conv",
    ),
    "transposed": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        Weight(6, 4, 3, 3, axis=1),
        4,
        [IMAGE],
        "quantized_conv",
    ),
    "transposed in groups": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=(3, 1), groups=2),
        Weight(6, 2, 3, 3, axis=None),
        4,
        [IMAGE],
        "quantized_conv",
    ),
    "conv without padding by name": (
        conv(padding="valid", stride=(2, 1)),
        Weight(5, 6, 3, 2),
        5,
        [IMAGE],
        "quantized_conv",
    ),
    "conv of one number for both": (
        conv(padding=(1,), stride=(2,), dilation=(2,)),
        Weight(5, 6, 3, 2),
        5,
        [IMAGE],
        "quantized_conv",
    ),
    "depthwise without padding by name": (
        conv(groups=6, padding="valid"),
        Weight(6, 1, 3, 3),
        6,
        [IMAGE],
        "quantized_depthwise_conv",
    ),
    "transposed of one number for both": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, (2,), (1,), (1,)),
        Weight(6, 4, 3, 3, axis=1),
        4,
        [IMAGE],
        "quantized_conv",
    ),
    "add": (torch.add, None, None, [IMAGE, IMAGE.flip(0)], "quantized_add"),
    "add broadcast": (torch.add, None, None, [IMAGE, IMAGE[:, :, :1, :1]], "quantized_add"),
    "sub of a multiple": (
        lambda a, b: torch.sub(a, b, alpha=3),
        None,
        None,
        [IMAGE, IMAGE.flip(0)],
        "quantized_add",
    ),
    "mul": (torch.mul, None, None, [IMAGE, IMAGE.flip(0)], "quantized_mul"),
    "mean": (lambda x: x.mean((2, 3)), None, None, [IMAGE], "quantized_mean"),
    "mean of rows": (lambda x: x.mean(-1, keepdim=True), None, None, [ROWS], "quantized_mean"),
    "avg pool": (pool(padding=1, stride=2), None, None, [IMAGE], "quantized_avg_pool"),
    "avg pool without padding": (
        pool(padding=1, count_include_pad=False),
        None,
        None,
        [IMAGE],
        "quantized_avg_pool",
    ),
    "adaptive pool": (
        lambda x: F.adaptive_avg_pool2d(x, (3, 1)),
        None,
        None,
        [IMAGE],
        "quantized_avg_pool",
    ),
    "max pool": (
        lambda x: F.max_pool2d(x, 3, 2, 1),
        None,
        None,
        [IMAGE],
        "quantized_max_pool lookup",
    ),
    "avg pool that rounds up": (
        lambda x: F.avg_pool2d(x, 2, ceil_mode=True),
        None,
        None,
        [IMAGE],
        "quantized_avg_pool",
    ),
    "avg pool that rounds up behind padding": (
        lambda x: F.avg_pool2d(x, 3, 2, (0, 1), True, False),
        None,
        None,
        [IMAGE],
        "quantized_avg_pool",
    ),
    "max pool that rounds up": (
        lambda x: F.max_pool2d(x, 2, ceil_mode=True),
        None,
        None,
        [IMAGE],
        "quantized_max_pool lookup",
    ),
    "sum": (lambda x: x.sum((2, 3), keepdim=True), None, None, [IMAGE / 16], "quantized_mean"),
    "maximum": (torch.maximum, None, None, [IMAGE, IMAGE.flip(0)], "lookup"),
    "minimum": (torch.minimum, None, None, [ROWS, ROWS[:1]], "lookup"),
    "amax": (lambda x: x.amax(1), None, None, [IMAGE], "lookup"),
    "stack": (lambda a, b: torch.stack([a, b], 1), None, None, [IMAGE, IMAGE.flip(0)], "lookup"),
    "roll": (lambda x: x.roll((2, 1), (1, 3)), None, None, [IMAGE], "lookup"),
    "selection": (lambda x: x[:, [3, 1, 1]], None, None, [IMAGE], "lookup"),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), None, None, [IMAGE], "lookup"),
    "nearest of a size": (lambda x: F.interpolate(x, (5, 12)), None, None, [IMAGE], "lookup"),
    "nearest of rows": (lambda x: F.interpolate(x, 7), None, None, [ROWS], "lookup"),
    "bilinear": (bilinear(scale_factor=2), None, None, [IMAGE], "quantized_interpolate"),
    "bilinear of a size": (bilinear(size=(5, 12)), None, None, [IMAGE], "quantized_interpolate"),
    "bilinear between corners": (
        bilinear(scale_factor=(1.3, 3), align_corners=True),
        None,
        None,
        [IMAGE],
        "quantized_interpolate",
    ),
    "bilinear of given scales": (
        bilinear(scale_factor=1.7, recompute_scale_factor=False),
        None,
        None,
        [IMAGE],
        "quantized_interpolate",
    ),
    "reflection": (
        lambda x: F.pad(x, (2, 1, 0, 3), mode="reflect"),
        None,
        None,
        [IMAGE],
        "lookup",
    ),
    "replication": (
        lambda x: F.pad(x, (2, 0), mode="replicate"),
        None,
        None,
        [ROWS],
        "lookup",
    ),
    "relu beside its input": (
        lambda x: torch.cat([x, rounded(x.relu())], 1),
        None,
        None,
        [IMAGE],
        "lookup lookup",
    ),
    "sigmoid": (torch.sigmoid, None, None, [IMAGE], "lookup"),
    "hardswish": (F.hardswish, None, None, [IMAGE], "lookup"),
    "silu": (F.silu, None, None, [IMAGE], "lookup"),
    "gelu of a multiple": (lambda x: F.gelu(x * 2 + 1), None, None, [IMAGE], "lookup"),
    "cat": (lambda a, b: torch.cat([a, b], 1), None, None, [IMAGE, IMAGE[:, :2]], "lookup"),
    "cat of two": (
        lambda a, b: torch.cat([a, rounded(b.sigmoid(), 0.01)], 1),
        None,
        None,
        [IMAGE, IMAGE[:, :2]],
        "lookup lookup lookup",
    ),
}


@pytest.mark.parametrize("name", ONE)
def test_one_operator(name):
    function, weight, bias, inputs, made = ONE[name]
    module = Quantized(function, weight, bias)
    program = fused(module, inputs)
    assert " ".join(n for n, c in integer_operators(program).items() for _ in range(c)) == made
    assert float_operators(program) == []
    assert_one_step(program, module, inputs)
    assert torch.equal(on_device(program, inputs), program.module()(*inputs))


def test_biases_of_weights_alone_move_no_channel():
    """With 127 products a step of the input 3 % of the channels are a step off for all inputs."""
    channels, scale = 512, 0.05
    weight = Weight(channels, 1, 1, 1)
    weight.integers.fill_(127)
    module = Quantized(conv(groups=channels), weight, channels, out_scale=0.017)
    integers = torch.arange(-128, 128.0) - 7
    image = (integers * scale).view(1, 1, 16, 16).expand(1, channels, 16, 16).contiguous()
    program = fused(module, [image])
    assert integer_operators(program) == {"quantized_depthwise_conv": 1}
    apart = (program.module()(image) - module(image)).abs() > 0.5 * module.out_scale
    assert apart.float().mean() < 2e-4


@pytest.mark.parametrize(
    ("clamp", "bounds"),
    [(F.relu, (-7, 127)), (F.relu6, (-7, 127)), (lambda x: x.clamp(max=0.5), (-128, 5))],
    ids=["relu", "relu6", "clamp"],
)
def test_clamps_are_bounds_of_the_output(clamp, bounds):
    module = Quantized(lambda x, w, b: clamp(F.linear(x, w, b)), Weight(4, 10), 4)
    program = fused(module, [ROWS])
    assert integer_operators(program) == {"quantized_linear": 1}
    (node,) = program.graph.find_nodes(
        op="call_function", target=torch.ops.etx.quantized_linear.default
    )
    assert node.args[-2:] == bounds
    assert_one_step(program, module, [ROWS])


class Block(torch.nn.Module):
    """An inverted residual with squeeze and excitation."""

    out_scale = 0.05

    def __init__(self):
        super().__init__()
        self.expand, self.depth, self.project = (
            Weight(12, 6, 1, 1),
            Weight(12, 1, 3, 3),
            Weight(6, 12, 1, 1),
        )
        self.squeeze, self.excite = Weight(4, 12, 1, 1), Weight(12, 4, 1, 1)

    def forward(self, image):
        x = rounded(image)
        y = rounded(F.hardswish(rounded(F.conv2d(x, self.expand()))))
        y = rounded(F.relu(F.conv2d(y, self.depth(), padding=1, groups=12)))
        s = rounded(F.adaptive_avg_pool2d(y, 1))
        s = rounded(F.relu(F.conv2d(s, self.squeeze())))
        s = rounded(F.hardsigmoid(rounded(F.conv2d(s, self.excite()))))
        y = rounded(F.conv2d(rounded(y * s), self.project()))
        return rounded(torch.cat([rounded(x + y), y], 1).flatten(1), self.out_scale)


def test_nothing_between_becomes_float_and_images_are_moved_at_the_border_alone():
    module = Block()
    program = fused(module, [IMAGE])
    assert float_operators(program) == []
    assert counts(program)["aten.permute_copy.default"] == 2
    assert torch.equal(on_device(program, [IMAGE]), program.module()(IMAGE))
    unequal = program.module()(IMAGE) != module(IMAGE)
    assert unequal.float().mean() < 0.05  # a step of one operator is one or more of the next


@given(st.data())
@settings(max_examples=24, deadline=None)
def test_convolutions(data):
    draw = data.draw
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    channels, count = groups * draw(st.integers(1, 5)), groups * draw(st.integers(1, 5))
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    window = {
        "stride": draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
        "dilation": draw(st.tuples(st.integers(1, 2), st.integers(1, 2))),
        "groups": groups,
    }
    transposed = draw(st.booleans())
    if transposed:
        limit = [d * (k - 1) for d, k in zip(window["dilation"], kernel, strict=True)]
        window["padding"] = tuple(draw(st.integers(0, n)) for n in limit)
        weight = Weight(channels, count // groups, *kernel, axis=1 if groups == 1 else None)
    else:
        window["padding"] = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
        weight = Weight(count, channels // groups, *kernel)
    for name in ("stride", "dilation", "padding"):
        if len(set(window[name])) == 1 and draw(st.booleans()):
            window[name] = window[name][:1]
    function = F.conv_transpose2d if transposed else F.conv2d
    module = Quantized(lambda x, w, b: function(x, w, b, **window), weight, count)
    inputs = [torch.randn(draw(st.integers(1, 2)), channels, 7, 6)]
    program = fused(module, inputs)
    assert float_operators(program) == []
    assert_one_step(program, module, inputs, unequal=1)
    assert torch.equal(on_device(program, inputs), program.module()(*inputs))


def test_an_integer_operator_comes_from_the_line_of_its_float_form():
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = Weight(4, 10)

        def forward(self, x):
            x = rounded(x)
            y = F.linear(x, self.weight())
            return rounded(y)

    program = fused(Layer(), [ROWS])
    (node,) = program.graph.find_nodes(
        op="call_function", target=torch.ops.etx.quantized_linear.default
    )
    assert "y = F.linear" in node.meta["stack_trace"].splitlines()[-1]


def declined(program):
    return [n.meta[DECLINED]["fuse_quantized"] for n in program.graph.nodes if DECLINED in n.meta]


@pytest.mark.parametrize(
    ("module", "inputs", "reason"),
    [
        (Quantized(lambda x, w, b: F.linear(x, w, b) + 0 * x.sum(), Weight(4, 10), 4), [ROWS], ""),
        (
            Quantized(F.linear, Weight(4, 10, axis=1), None),
            [ROWS],
            "the weight has a scale for each input, not for each output",
        ),
        (
            Quantized(lambda x, w, b: F.linear(x, w, b), Weight(1, 70000, axis=None), None),
            [torch.zeros(1, 70000)],
            "int32 cannot hold a sum of 70000 products",
        ),
        (
            Quantized(lambda x, w, b: F.conv3d(x, w, b), Weight(2, 1, 2, 2, 2), None),
            [torch.zeros(1, 1, 3, 3, 3)],
            "only batches of one or two dimensions are convolved in integers",
        ),
    ],
    ids=["other reader", "axis", "depth", "rank"],
)
def test_what_does_not_fit_stays_and_says_why(module, inputs, reason):
    program = fused(module, inputs)
    assert "quantized_linear" not in integer_operators(program)
    if reason:
        assert reason in declined(program)
    assert torch.equal(program.module()(*inputs), module(*inputs))


BATCH = torch.export.Dim("batch", min=1, max=8)
SIDE = torch.export.Dim("side", min=6, max=40)
CHANGING = ("conv", "depthwise", "conv1d", "transposed", "add", "mean", "max pool", "linear")


@pytest.mark.parametrize("name", CHANGING)
def test_sizes_that_change(name):
    function, weight, bias, inputs, made = ONE[name]
    module = Quantized(function, weight, bias)
    sizes = {0: BATCH, 2: SIDE} if inputs[0].dim() == 4 else {0: BATCH}
    program = fused(module, inputs, dynamic_shapes=((sizes,) * len(inputs),))
    assert " ".join(n for n, c in integer_operators(program).items() for _ in range(c)) == made
    assert float_operators(program) == []
    more = [torch.cat([x, x.flip(0)]) for x in inputs]
    more = [torch.cat([x, x], 2) if x.dim() == 4 else x for x in more]
    assert torch.equal(on_device(program, more), program.module()(*more))


@pytest.mark.parametrize("other", [IMAGE[:, :, :1, :1], IMAGE[:1], IMAGE[0, :, :1]])
@pytest.mark.parametrize("function", [torch.add, torch.mul])
def test_sizes_that_change_are_broadcast(function, other):
    module, inputs = Quantized(function, None, None), [IMAGE, other]
    sizes = {0: BATCH} if other.dim() == 4 and len(other) > 1 else {}
    program = fused(module, inputs, dynamic_shapes=(({0: BATCH}, sizes),))
    assert float_operators(program) == []
    more = [torch.cat([x, x.flip(0)]) if d else x for x, d in zip(inputs, (1, sizes), strict=True)]
    assert torch.equal(on_device(program, more), program.module()(*more))
