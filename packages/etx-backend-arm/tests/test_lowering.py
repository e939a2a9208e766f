# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest
import reference_model
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.nodes import Profile, why_not
from etx_backend_arm.partition import TOSAPartitioner, partitioner
from etx_backend_arm.tosa import Op, read_tosa
from etx_exir import CompileSpec
from etx_exir.errors import BackendError
from etx_exir.ir.constants import Constants
from lowered import delegates, lower, operators
from torch import nn

SHAPE = (1, 3, 12, 15)
CASES = {
    "conv_relu": nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()),
    "padded": nn.Sequential(nn.Conv2d(3, 8, (3, 5), padding=(1, 2)), nn.ReLU()),
    "strided": nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU6()),
    "dilated": nn.Sequential(nn.Conv2d(3, 4, 3, dilation=2), nn.Hardtanh(-0.5, 0.25)),
    "remainder": nn.Sequential(nn.Conv2d(3, 4, 2, stride=3), nn.ReLU()),
    "depthwise": nn.Sequential(nn.Conv2d(3, 6, 3, groups=3), nn.ReLU()),
    "no_bias": nn.Sequential(nn.Conv2d(3, 8, 1, bias=False), nn.ReLU()),
    "transposed": nn.ConvTranspose2d(3, 5, 3, stride=2, padding=1, output_padding=1),
    "layer_norm": nn.Sequential(nn.LayerNorm((12, 15)), nn.LayerNorm(15, bias=False)),
    "linear": nn.Sequential(nn.Linear(15, 6), nn.ReLU(), nn.Linear(6, 2, bias=False)),
    "two_layers": nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.ReLU()),
}


@pytest.mark.parametrize("name", CASES)
def test_reference_model_agrees_with_eager(name: str) -> None:
    torch.manual_seed(0)
    model, image = CASES[name], torch.randn(SHAPE)
    (delegate,) = delegates(lower(model.eval(), image))
    (actual,) = reference_model.run(delegate.processed_bytes, image.numpy())
    with torch.no_grad():
        expected = model(image)
    torch.testing.assert_close(torch.from_numpy(actual), expected, rtol=1e-5, atol=1e-5)


def test_graph_is_version_1_0_and_transposes_only_at_its_border() -> None:
    (delegate,) = delegates(lower(CASES["two_layers"].eval(), torch.randn(SHAPE)))
    graph = read_tosa(delegate.processed_bytes)
    assert graph.version is not None
    assert (graph.version.major, graph.version.minor, graph.version.draft) == (1, 0, False)
    ops = operators(delegate.processed_bytes)
    layer = [Op.CONV2D, Op.CLAMP]
    assert ops == [Op.TRANSPOSE, *layer, *layer, Op.TRANSPOSE]


def test_the_rest_of_the_program_stays_outside() -> None:
    class Sorted(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).sort(1)[0]

    model = Sorted(nn.Conv2d(3, 4, 3), nn.ReLU())
    program = lower(model.eval(), torch.randn(SHAPE))
    targets = {str(n.target) for n in program.graph.nodes if n.op == "call_function"}
    assert len(delegates(program)) == 1
    assert "aten.topk.default" in targets
    assert not {"aten.convolution.default", "aten.relu.default"} & targets


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (nn.Conv2d(520, 260, 1, groups=130), "has 130 groups"),
        (nn.ConvTranspose2d(4, 4, 3, dilation=2), "has a dilation of [2, 2]"),
        (nn.Conv2d(4, 4, 3).double(), "torch.float64"),
    ],
)
def test_a_node_that_stays_out_says_why(model: nn.Module, reason: str) -> None:
    dtype = next(model.parameters()).dtype
    channels = model.in_channels
    program = lower(model.eval(), torch.randn(1, channels, 10, 10, dtype=dtype))
    assert delegates(program) == []
    (node,) = [n for n in program.graph.nodes if n.target is torch.ops.aten.convolution.default]
    constants = Constants(program)
    assert reason in (why_not(node, constants.get, Profile.FP) or "")
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
    partitioner.partition(program)
    assert reason in (partitioner.why_not(node) or "")


def test_clamp_with_one_bound() -> None:
    class Clamp(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.clamp(min=-0.5)

    x = torch.randn(2, 5)
    (delegate,) = delegates(lower(Clamp().eval(), x))
    (actual,) = reference_model.run(delegate.processed_bytes, x.numpy())
    torch.testing.assert_close(torch.from_numpy(actual), x.clamp(min=-0.5), rtol=0, atol=0)


def test_the_partitioner_of_the_command_takes_a_specification() -> None:
    assert isinstance(partitioner([]), TOSAPartitioner)
    chosen = partitioner([CompileSpec("tosa_spec", b"TOSA-1.0+FP")])
    assert chosen.compile_spec.profiles == (Profile.FP,)
    with pytest.raises(BackendError, match="TOSABackend has no option 'fast'"):
        partitioner([CompileSpec("fast", b"1")])
    with pytest.raises(BackendError, match=r"'TOSA-0\.8'; expected TOSA-1\.0"):
        partitioner([CompileSpec("tosa_spec", b"TOSA-0.8")])
