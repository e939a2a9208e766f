# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are right: every result is compared, or it is said why not, without an alarm."""

from __future__ import annotations

import pytest
import torch
from compared_models import content, exported, rows
from etx_devtools.compare import compare
from etx_devtools.compare.writes import without_simple_writes
from etx_exir import ExecutorchBackendConfig, MemoryPlanningPass, to_edge
from torch import nn


@pytest.mark.parametrize("name", rows())
def test_no_alarm(name):
    program, inputs = exported(name)
    pte = content(name)
    report = compare(pte, program, [inputs, inputs])
    assert report.first is None, "\n".join(report.lines())
    assert len(report.calls) == 2
    for call in report.calls:
        assert len(call.checks) >= 2
        assert {check.reason for check in call.checks} == {""}
        assert any(check.by == "value" for check in call.checks)
        for output in filter(None, call.outputs):
            assert output.max_abs < 1e-5


def test_folded_batch_norms_have_their_own_value():
    program, inputs = exported("convolutions")
    report = compare(content("convolutions"), program, [inputs])
    found = {c.operator: c.value for c in report.calls[0].checks}
    assert found["aten::convolution.out"].startswith("batch_norm")
    assert all(check.by == "value" for check in report.calls[0].checks)


def test_a_branch_that_is_not_taken_is_counted():
    program, inputs = exported("branch")
    pte = content("branch")
    negative = [(-inputs[0],)]
    report = compare(pte, program, [inputs, *negative])
    names = [{check.value for check in call.checks} for call in report.calls]
    assert any(name.startswith("true_graph_0.") for name in names[0])
    assert any(name.startswith("false_graph_0.") for name in names[1])
    assert [call.not_run for call in report.calls] == [2, 2]


def test_other_sizes_than_the_example():
    program, _ = exported("dynamic")
    pte = content("dynamic")
    report = compare(pte, program, [(torch.randn(n, 4),) for n in (2, 5, 8)])
    assert report.first is None
    assert [call.checks[0].shape[0] for call in report.calls] == [2, 5, 8]


def test_a_module_is_exported():
    module = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    inputs = (torch.randn(1, 3),)
    pte = to_edge(torch.export.export(module, inputs)).to_executorch().pte_file
    assert compare(pte, module, [inputs]).first is None


def test_half_precision():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.LayerNorm(32)).half()
    inputs = (torch.randn(2, 64).half(),)
    program = torch.export.export(module, inputs)
    report = compare(to_edge(program).to_executorch().pte_file, program, [inputs])
    assert report.first is None, "\n".join(report.lines())


def test_a_mean_that_cancels():
    torch.manual_seed(0)
    module = nn.Sequential(*(nn.LayerNorm(96, elementwise_affine=False) for _ in range(4)))
    inputs = (torch.randn(49, 96),)
    program = torch.export.export(module, inputs)
    report = compare(to_edge(program).to_executorch().pte_file, program, [inputs])
    assert report.first is None, "\n".join(report.lines())


class Tokens(nn.Module):
    """An embedding, a convolution and linear layers."""

    def __init__(self):
        super().__init__()
        self.rows, self.mix = nn.Embedding(40, 32), nn.Conv1d(32, 24, 3, padding=1)
        self.wide, self.head = nn.Linear(24, 256), nn.Linear(256, 5)

    def forward(self, tokens):
        mixed = self.mix(self.rows(tokens).transpose(1, 2)).transpose(1, 2)
        return self.head(self.wide(mixed).relu()).log_softmax(-1)


@pytest.mark.parametrize("is_wrong", [False, True])
def test_weights_in_half(is_wrong):
    """A layer is as right as its weights are; another weight is wrong all the same."""
    torch.manual_seed(0)
    model = Tokens().eval()
    inputs = (torch.randint(40, (2, 12)),)
    program = torch.export.export(model, inputs)
    edge = to_edge(program)
    pte = edge.to_executorch(ExecutorchBackendConfig(precision="bf16")).pte_file
    if is_wrong:
        program.state_dict["wide.weight"].data[3] *= 1.5
    report = compare(pte, program, [inputs])
    assert (report.first is not None) == is_wrong, "\n".join(report.lines())
    if is_wrong:
        assert report.first[1].operator == "etx::narrow_linear.out"
        assert report.first[1].module == "wide"


class InPlace(nn.Module):
    """Activations that write where their input was, or through a view of it."""

    def __init__(self, is_view):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.is_view = is_view

    def forward(self, x):
        y = self.first(x)
        if self.is_view:
            y.view(-1).relu_()
        z = nn.functional.relu6(y, inplace=True)
        return self.second(z).relu_() + y


@pytest.mark.parametrize("is_view", [False, True])
def test_what_is_written_in_place(is_view):
    torch.manual_seed(0)
    inputs = (torch.randn(2, 4),)
    program = torch.export.export(InPlace(is_view).eval(), inputs)
    assert (without_simple_writes(program) is None) == is_view
    report = compare(to_edge(program).to_executorch().pte_file, program, [inputs])
    assert report.first is None, "\n".join(report.lines())
    assert {check.by for check in report.calls[0].checks} == {"value"}
    assert report.largest < 1e-6


class Parts(nn.Module):
    """Reads parts of what the caller gives, and parts of these."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, keys, x):
        for layer in range(3):
            part = keys[layer]
            x = self.linear(x) @ part[1:3].transpose(-1, -2) + part[0].exp()
        return x


@pytest.mark.parametrize("is_planned", [False, True])
def test_parts_of_inputs(is_planned):
    torch.manual_seed(0)
    inputs = (torch.randn(3, 4, 4, 4), torch.randn(2, 4, 4))
    program = torch.export.export(Parts().eval(), inputs)
    plan = MemoryPlanningPass(alloc_graph_input=is_planned)
    config = ExecutorchBackendConfig(memory_planning_pass=plan)
    pte = to_edge(program).to_executorch(config).pte_file
    names = {row.name for row in pte.program.execution_plan[0].operators}
    assert ("etx::view_at" in names) is not is_planned
    report = compare(pte, program, [inputs])
    assert report.first is None, "\n".join(report.lines())
    assert report.largest < 1e-6
