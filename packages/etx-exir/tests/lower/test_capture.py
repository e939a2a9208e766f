# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir import capture, compile, to_edge
from etx_exir.errors import CaptureError, ConfigError
from torch import nn


class Branching(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


def test_a_branch_on_data_names_the_line_and_the_way_out():
    with pytest.raises(CaptureError, match=r"Branching cannot be exported") as caught:
        capture(Branching(), (torch.ones(2),))
    line = Branching.forward.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}" in str(caught.value)
    assert "use torch.cond" in str(caught.value)


def test_wrong_inputs():
    with pytest.raises(CaptureError, match="expected a tuple, got Tensor; for one input write"):
        capture(nn.ReLU(), torch.ones(2))
    with pytest.raises(CaptureError, match="one entry for each positional argument"):
        capture(nn.ReLU(), (torch.ones(2), torch.ones(2)))


def test_something_else_than_a_module():
    with pytest.raises(CaptureError, match=r"expected a torch\.nn\.Module, got function"):
        capture(lambda x: x, (torch.ones(2),))


def test_violated_dynamic_shapes():
    batch = torch.export.Dim("batch", min=2, max=8)
    with pytest.raises(CaptureError, match="dynamic_shapes disagree"):
        capture(nn.Linear(3, 4), (torch.ones(2, 3),), dynamic_shapes=({1: batch},))


def test_the_mode_of_the_model_is_restored():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(), nn.BatchNorm1d(4))
    model[2].eval()
    program = capture(model, (torch.ones(2, 3),))
    assert [module.training for module in model] == [True, True, False]
    assert "dropout" not in str(to_edge(program).exported_program().graph)


def test_compile_writes_the_file(tmp_path):
    path = tmp_path / "model.pte"
    finished = compile(nn.Linear(3, 4), (torch.ones(2, 3),), path=path)
    assert path.read_bytes() == finished.buffer
    assert finished.buffer[4:8] == b"ET12"


def test_a_module_where_a_program_belongs():
    with pytest.raises(ConfigError, match=r"expected an ExportedProgram, got ReLU; call torch"):
        to_edge(nn.ReLU())
