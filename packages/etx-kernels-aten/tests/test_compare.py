# SPDX-License-Identifier: BSD-3-Clause
"""A program that runs with torch's kernels is told apart from other kernels, call by call."""

from __future__ import annotations

import etx_runtime
import numpy as np
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_kernels_aten.compare import compare, main
from etx_schema import read_pte
from torch import nn


def model():
    return nn.Sequential(nn.Linear(8, 8), nn.Softmax(-1), nn.Linear(8, 2)).eval()


def exported(module, *inputs):
    config = ExecutorchBackendConfig(target=None)
    return to_edge(torch.export.export(module, inputs)).to_executorch(config)


def test_portable_kernels_are_close():
    program = exported(model(), torch.ones(2, 8))
    rows = list(compare(read_pte(program.buffer), [np.ones((2, 8), np.float32)]))
    assert [row.operator for row in rows] == [
        "aten::linear.out",
        "aten::_softmax.out",
        "aten::linear.out",
    ]
    assert all(row.difference <= 1e-5 and row.largest > 0 and not row.problem for row in rows)


def test_a_kernel_that_computes_something_else_is_found():
    class Noisy(nn.Module):
        def forward(self, x):
            return x.relu() + torch.rand(8)

    rows = list(compare(read_pte(exported(Noisy(), torch.ones(8)).buffer), [torch.ones(8)]))
    assert {row.operator: row.difference > 0.01 for row in rows} == {
        "aten::relu.out": False,
        "aten::rand.out": True,
        "aten::add.out": False,
    }


def test_a_registered_kernel_is_that_of_both_sides():
    program = exported(model(), torch.ones(2, 8))
    x = np.ones((2, 8), np.float32)
    pte = read_pte(program.buffer)
    clean = list(compare(pte, [x], kernels=["portable"]))
    assert max(row.difference for row in clean) < 1e-5
    etx_runtime.register_kernel("aten::_softmax.out", lambda x, dim, half, out: out * 0 + 5)
    try:
        assert max(row.difference for row in compare(pte, [x], kernels=["portable"])) == 0
    finally:
        etx_runtime.unregister("aten::_softmax.out")


def test_an_operator_of_only_torch_is_named(tmp_path, capsys):
    library = torch.library.Library("own", "FRAGMENT")
    library.define("half(Tensor x) -> Tensor")
    library.impl("half", lambda x: x / 2, "CPU")
    torch.library.register_fake("own::half", torch.empty_like, lib=library)

    class Halves(nn.Module):
        def forward(self, x):
            return torch.ops.own.half(x).relu()

    exported(Halves(), torch.ones(3)).save(tmp_path / "net.pte")
    try:
        assert main([str(tmp_path / "net.pte")]) == 0
    finally:
        library._destroy()
    text = capsys.readouterr().out
    assert "own::half.out" in text
    assert "is not among the kernels portable" in text
    assert "aten::relu.out                           differs by 0 of" in text


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int64, torch.bool])
def test_random_inputs_of_any_dtype(dtype, tmp_path, capsys):
    class Steps(nn.Module):
        def forward(self, x, by: int):
            return torch.cat([x, x]).reshape(by, -1)

    exported(Steps(), torch.ones(2, 6).to(dtype), 3).save(tmp_path / "net.pte")
    assert main([str(tmp_path / "net.pte")]) == 0
    assert "aten::cat.out" in capsys.readouterr().out


def test_inputs_are_read_as_other_commands_read_them(tmp_path, capsys):
    program = str(tmp_path / "net.pte")
    exported(model(), torch.ones(2, 8)).save(program)
    x = np.ones((2, 8), np.float32)
    np.savez(tmp_path / "named.npz", input=x)
    np.save(tmp_path / "plain.npy", x)
    for name in ("named.npz", "plain.npy"):
        assert main([program, str(tmp_path / name)]) == 0
    capsys.readouterr()
    whole = (tmp_path / "named.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    np.savez(tmp_path / "other.npz", wrong=x)
    np.savez(tmp_path / "two.npz", input=np.stack([x, x]))
    refused = {
        "cut.npz": "cannot be read as a .npy or .npz",
        "other.npz": "the array 'wrong' is of no input",
        "two.npz": "expected inputs for one call, got 2 sets",
        "absent.npz": "no such file",
    }
    for name, reason in refused.items():
        assert main([program, str(tmp_path / name)]) == 2
        said = capsys.readouterr()
        assert reason in said.err
        assert not said.out
    assert main([str(tmp_path / "cut.npz")]) == 2
