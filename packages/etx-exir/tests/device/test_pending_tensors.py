# SPDX-License-Identifier: BSD-3-Clause
"""Tensors that torch conjugates or negates only when they are read, as inputs."""

from __future__ import annotations

import etx_runtime
import numpy as np
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, MemoryPlanningPass, compile
from torch import nn


class Doubled(nn.Module):
    def forward(self, x):
        return (torch.view_as_real(x) if x.is_complex() else x) * 2


Z = torch.view_as_complex(torch.randn(3, 4, 2))
FORMS = {
    "negated": torch._neg_view(Z.real),
    "imaginary part": Z.conj().imag,
    "parameter": nn.Parameter(torch.randn(3, 4))._neg_view(),
    "conjugated": Z.conj(),
    "both": torch._neg_view(Z.conj()),
    "transposed": Z.mH,
}


@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_inputs_are_as_torch_reads_them(form, planned):
    x = FORMS[form]
    assert x.is_neg() or x.is_conj()
    config = ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(alloc_graph_input=planned)
    )
    plain = x.detach().resolve_conj().resolve_neg().contiguous()
    model = etx_runtime.load(compile(Doubled(), (plain,), config=config).buffer)
    expected = Doubled()(plain).numpy()
    np.testing.assert_allclose(model(x), expected, rtol=1e-6)
    np.testing.assert_allclose(model(x), expected, rtol=1e-6)
