# SPDX-License-Identifier: BSD-3-Clause
"""Memory without values, of sizes that only the call knows, is had from an operator of targets."""

from __future__ import annotations

import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, compile
from torch.export import Dim

FORMS = {
    "empty_like": lambda p, x: torch.empty_like(p),
    "new_empty": lambda p, x: p.new_empty(p.shape),
    "empty": lambda p, x: torch.empty(p.shape[0], dtype=p.dtype),
    "empty_permuted": lambda p, x: torch.empty_permuted(p.shape, (0,), dtype=p.dtype),
    "empty_strided": lambda p, x: torch.empty_strided(p.shape, (1,), dtype=p.dtype),
    "new_empty_strided": lambda p, x: p.new_empty_strided(p.shape, (1,)),
    "of a transposed": lambda p, x: torch.empty_like(x.to(p.dtype).t())[0],
}


class Inverse(torch.nn.Module):
    """The inverse of a permutation, as a mixture of experts brings its tokens back."""

    def __init__(self, form):
        super().__init__()
        self.form = form

    def forward(self, x):
        order = x.sum(1).argsort()
        memory = self.form(order, x)
        return memory.scatter(0, order, torch.arange(order.shape[0]))


@pytest.mark.parametrize("target", ["etx", "executorch"])
@pytest.mark.parametrize("form", FORMS)
def test_sizes_of_the_call(form, target, tmp_path):
    shapes = ({0: Dim("n", min=2, max=9)},)
    config = ExecutorchBackendConfig(target=target)
    model, path = Inverse(FORMS[form]), tmp_path / "m.pte"
    compile(model, (torch.ones(4, 3),), dynamic_shapes=shapes, config=config, path=path)
    loaded = etx_runtime.load(path, outputs="torch")
    for count in (2, 4, 9):
        x = torch.randn(count, 3)
        assert torch.equal(loaded(x), x.sum(1).argsort().argsort())
