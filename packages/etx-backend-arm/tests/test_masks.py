# SPDX-License-Identifier: BSD-3-Clause
"""Masked attention in integers: what a mask hides takes nothing of the range of the scores."""

from __future__ import annotations

from collections.abc import Callable

import etx_runtime
import numpy as np
import pytest
import torch
import torchao
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.ethos_u.backend import EthosUPartitioner, EthosUQuantizer
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.lowering import lower_program
from etx_backend_arm.masks import rewrite_attention
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import (
    TOSAQuantizer,
    get_symmetric_a16w8_quantization_config,
)
from etx_exir import to_edge_transform_and_lower
from etx_quant import get_symmetric_quantization_config, quantize
from lowered import delegates, interpreted, lower
from test_networks import noise
from torch import Tensor, nn
from torch.nn import functional as F
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e

LEAST = torch.finfo(torch.float32).min
STEPS, WIDTH, HEADS = 12, 16, 2
LATER = torch.ones(STEPS, STEPS, dtype=torch.bool).triu(1)
pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes self")


def added(low: float, bias: float = 0.0) -> Tensor:
    """Return a mask that is added, with the slopes of a bias where it is seen."""
    apart = (torch.arange(STEPS)[:, None] - torch.arange(STEPS)).abs() * bias
    return -apart.masked_fill(LATER, -low)


class Attention(nn.Module):
    """Self-attention, of whose scores a function makes the ones that a softmax reads."""

    def __init__(self, mask: Callable[..., Tensor], *numbers: Tensor) -> None:
        super().__init__()
        self.mask = mask
        self.numbers = nn.ParameterList(nn.Parameter(n, requires_grad=False) for n in numbers)
        self.inner, self.outer = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, *given: Tensor) -> Tensor:
        """Return [batch, STEPS, WIDTH] of the same."""
        parts = self.inner(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        scores = query @ key.transpose(-1, -2) * 0.7
        made = self.mask(scores, *self.numbers, *given).softmax(-1) @ value
        return self.outer(made.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class Fused(Attention):
    """The same by PyTorch's own operator, whose options a function returns."""

    def forward(self, x: Tensor, *given: Tensor) -> Tensor:
        """Return [batch, STEPS, WIDTH] of the same."""
        parts = self.inner(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        options = self.mask(*self.numbers, *given)
        made = F.scaled_dot_product_attention(*parts.unbind(0), **options)  # type: ignore[misc]
        return self.outer(made.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


CONSTANT: dict[str, tuple[type[Attention], Callable[..., object], tuple[Tensor, ...]]] = {
    "causal": (Fused, lambda: {"is_causal": True}, ()),
    "truths": (Fused, lambda m: {"attn_mask": m}, (~LATER,)),
    "infinities": (Fused, lambda m: {"attn_mask": m}, (added(-torch.inf),)),
    "with_a_bias": (Fused, lambda m: {"attn_mask": m}, (added(-torch.inf, 0.25),)),
    "filled": (Attention, lambda s, m: s.masked_fill(m, -torch.inf), (LATER,)),
    "filled_in_place": (Attention, lambda s, m: s.masked_fill_(m, LEAST), (LATER,)),
    "filled_through_views": (
        Attention,
        lambda s, m: s.transpose(2, 3).masked_fill(m.T, -1e9).transpose(2, 3),
        (LATER,),
    ),
    "chosen": (Attention, lambda s, m: torch.where(m, s, -torch.inf), (~LATER,)),
    "chosen_before": (Attention, lambda s, m: torch.where(m, LEAST, s), (LATER,)),
    "added_infinities": (Attention, lambda s, m: s + m, (added(-torch.inf),)),
    "added_least": (Attention, lambda s, m: s + m[None, None], (added(LEAST),)),
    "added_thousands": (Attention, lambda s, m: s + m, (added(-1e4),)),
    "added_hundred": (Attention, lambda s, m: m + s, (added(-100.0, 0.25),)),
    "added_in_place": (Attention, lambda s, m: s.add_(m), (added(-1e9),)),
    "subtracted": (Attention, lambda s, m: s - m, (-added(-1e9),)),
    "then_moved": (
        Attention,
        lambda s, m, n: s.masked_fill(m, -torch.inf) - n,
        (LATER, torch.linspace(-2, 2, STEPS)),
    ),
    "twice": (
        Attention,
        lambda s, m, n: s.masked_fill(m, -1e9) + n,
        (LATER, added(0.0).masked_fill(LATER.flip(0), -1e9)),
    ),
}
"""Masks that are parts of the model."""
PADDED = (torch.arange(STEPS) < 9)[None]
GIVEN: dict[str, tuple[type[Attention], Callable[..., object], Tensor]] = {
    "truths": (Fused, lambda m: {"attn_mask": m[:, None, None]}, PADDED),
    "filled": (Attention, lambda s, m: s.masked_fill(~m[:, None, None], -1e9), PADDED),
    "inverted_truths": (
        Attention,
        lambda s, m: s + (1.0 - m[:, None, None].float()) * LEAST,
        PADDED,
    ),
    "inverted": (
        Attention,
        lambda s, m: s + (1.0 - m[:, None, None]) * LEAST,
        PADDED.float(),
    ),
    "subtracted": (
        Attention,
        lambda s, m: s - 1e9 * (1.0 - m[:, None, None]),
        PADDED.float(),
    ),
    "both": (
        Attention,
        lambda s, m: s + added(-torch.inf).masked_fill(~m[:, None, None], LEAST),
        PADDED,
    ),
}
"""Masks that come with the input, [batch, STEPS]."""


def batches(number: int, *given: Tensor) -> list[tuple[Tensor, ...]]:
    """Return inputs from a seed."""
    torch.manual_seed(1)
    return [(torch.randn(1, STEPS, WIDTH) * 2, *given) for _ in range(number)]


def check(model: nn.Module, given: tuple[Tensor, ...], spec: str = "TOSA-1.0+INT") -> None:
    """Check that all of a model is one delegate, a step from the quantized, and near to floats."""
    target = TosaCompileSpec(spec)
    quantizer = TOSAQuantizer(target)
    if "int16" in spec:
        quantizer.set_global(get_symmetric_a16w8_quantization_config())
    first, *others = batches(9, *given)
    with torch.no_grad():
        expected = model(*first)
    quantized = quantize(model, others, quantizer)
    program = lower(quantized, *first, partitioner=TOSAPartitioner(target))
    assert len(delegates(program)) == 1
    left = {str(n.target) for n in program.graph.nodes if n.op == "call_function"}
    assert not any("aten" in name for name in left), left
    (actual,) = interpreted(program, *first)
    with torch.no_grad():
        assert noise(actual, quantized(*first)) > 40
        assert noise(actual, expected) > 24


@pytest.mark.parametrize("name", CONSTANT)
def test_a_mask_of_the_model_is_one_delegate(name: str) -> None:
    kind, function, numbers = CONSTANT[name]
    torch.manual_seed(0)
    check(kind(function, *numbers).eval(), ())  # type: ignore[arg-type]


@pytest.mark.parametrize("name", GIVEN)
def test_a_mask_that_is_given_is_one_delegate(name: str) -> None:
    kind, function, mask = GIVEN[name]
    torch.manual_seed(0)
    check(kind(function).eval(), (mask,))  # type: ignore[arg-type]


def test_a_mask_hides_what_calibration_did_not() -> None:
    """Nor are the scores of calibration apart: what is hidden lies below all of them."""
    kind, function, mask = GIVEN["truths"]
    torch.manual_seed(0)
    model = kind(function).eval()  # type: ignore[arg-type]
    samples = [(x * 0.2, torch.ones_like(mask)) for (x,) in batches(9)]
    quantized = quantize(model, samples, TOSAQuantizer())
    hidden = (samples[0][0], mask)
    (actual,) = interpreted(lower(quantized, *hidden), *hidden)
    with torch.no_grad():
        assert noise(actual, model(*hidden)) > 24


class Weighed(nn.Module):
    """Attention that returns its shares, too: PyTorch adds the mask as it multiplies."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.mask = nn.Parameter(added(-torch.inf), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return [batch, STEPS, WIDTH] of the same."""
        return self.layer(x, x, x, attn_mask=self.mask)[0]  # type: ignore[no-any-return]


class Padded(nn.Module):
    """A layer that does not read what is padding."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True)

    def forward(self, x: Tensor, is_padding: Tensor) -> Tensor:
        """Return [batch, STEPS, WIDTH] of the same."""
        return self.layer(x, src_key_padding_mask=is_padding)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("model", "given"), [(Weighed, ()), (Padded, (~PADDED,))])
def test_layers_of_pytorch_are_one_delegate(
    model: type[nn.Module], given: tuple[Tensor, ...]
) -> None:
    torch.manual_seed(0)
    check(model().eval(), given)


def test_a_mask_of_sixteen_bits() -> None:
    torch.manual_seed(0)
    check(Fused(lambda: {"is_causal": True}).eval(), (), "TOSA-1.0+INT+int16")


def test_masks_in_training_leave_scores_in_floats() -> None:
    """No range is made of what is masked while it is trained: softmax and mask stay as they are."""
    config = get_symmetric_quantization_config(is_per_channel=True, is_qat=True)
    quantizer = TOSAQuantizer().set_global(config)
    torch.manual_seed(0)
    model, samples = Fused(lambda: {"is_causal": True}).eval(), batches(9)
    with torch.no_grad():
        expected = model(*samples[0])
    prepared = prepare_qat_pt2e(torch.export.export(model, samples[0]).module(), quantizer)
    for sample in samples:
        prepared(*sample)
    torchao.quantization.pt2e.move_exported_model_to_eval(prepared)
    trained = convert_pt2e(prepared)
    with torch.no_grad():
        assert noise(trained(*samples[0]), expected) > 20
    program = lower(trained, *samples[0])
    (actual,) = interpreted(program, *samples[0])
    with torch.no_grad():
        assert noise(actual, trained(*samples[0])) > 40


def test_scores_that_more_than_a_softmax_reads() -> None:
    """They stay in floats: a range for all would leave the softmax nothing."""

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(WIDTH, STEPS)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            scores = self.layer(x).masked_fill(LATER, -torch.inf)
            return scores.softmax(-1), scores.clamp(min=-5.0)

    torch.manual_seed(0)
    model, samples = Both().eval(), batches(9)
    quantized = quantize(model, samples, TOSAQuantizer())
    program = lower(quantized, *samples[0])
    with torch.no_grad():
        for actual, expected in zip(
            interpreted(program, *samples[0]), model(*samples[0]), strict=True
        ):
            assert noise(actual, expected) > 24


def test_what_views_share_is_written_in_place() -> None:
    class Shares(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x * 2.0
            first, second = y.chunk(2, -1)
            shares = first.masked_fill_(LATER[:, :8], -1e9).softmax(-1)
            return shares + second + y[..., :8].clamp(-4.0, 4.0)

    torch.manual_seed(0)
    samples = batches(9)
    exported = torch.export.export(Shares(), samples[0]).module()
    rewrite_attention(exported, lambda node: True)  # type: ignore[arg-type]
    torch.testing.assert_close(exported(*samples[0]), Shares()(*samples[0]))


def test_groups_of_queries_share_keys() -> None:
    class Shared(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    torch.manual_seed(0)
    samples = [tuple(torch.randn(1, n, 6, 8) for n in (4, 2, 2)) for _ in range(9)]
    quantized, known = quantize(Shared(), samples, TOSAQuantizer()), samples[1]
    program = lower(quantized, *known)
    assert len(delegates(program)) == 1
    (actual,) = interpreted(program, *known)
    assert noise(actual, Shared()(*known)) > 24


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u65-256"])
def test_a_causal_encoder_runs_on_the_simulator(target: str) -> None:
    torch.manual_seed(0)
    spec = EthosUCompileSpec(target)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True).eval()
    mask = nn.Transformer.generate_square_subsequent_mask(STEPS)

    class Causal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer
            self.register_buffer("mask", mask)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x, src_mask=self.mask, is_causal=True)  # type: ignore[no-any-return]

    model, (first, *others) = Causal().eval(), batches(9)
    quantized = quantize(model, others, EthosUQuantizer(spec))
    exported = torch.export.export(quantized, first)
    edge = to_edge_transform_and_lower(exported, partitioner=[EthosUPartitioner(spec)])
    program = edge.exported_program("forward")
    assert len(delegates(program)) == 1
    (expected,) = interpreted(
        program, *first, graph_of=lambda d: lower_program(d.original_module, True).serialize()
    )
    actual = etx_runtime.load(bytes(edge.to_executorch().buffer))(first[0].numpy())
    np.testing.assert_array_equal(actual, expected)
    with torch.no_grad():
        assert noise(torch.from_numpy(actual), model(*first)) > 20


def test_what_does_not_mask_is_left_as_it_is() -> None:
    """Numbers that all scores are moved or multiplied by hide nothing."""
    torch.manual_seed(0)
    check(Attention(lambda s: s - 50.0 + s.mul(-2.0)).eval(), ())


def test_a_state_is_not_a_constant_mask() -> None:
    """A buffer that the model writes is read when it runs."""

    class Stateful(Attention):
        def forward(self, x: Tensor, *given: Tensor) -> Tensor:
            mask = self.get_buffer("seen")
            made = super().forward(x, mask * -1e9)
            mask[0].copy_(torch.ones(STEPS))
            return made

    torch.manual_seed(0)
    model = Stateful(lambda s, m: s + m).eval()
    model.register_buffer("seen", torch.zeros(STEPS, STEPS))
    exported = torch.export.export(model, batches(1)[0]).module()
    assert isinstance(exported, torch.fx.GraphModule)
    (softmax,) = exported.graph.find_nodes(op="call_function", target=torch.ops.aten.softmax.int)
    rewrite_attention(exported, lambda node: True)
    assert softmax in exported.graph.nodes
