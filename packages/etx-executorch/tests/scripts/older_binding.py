# SPDX-License-Identifier: BSD-3-Clause
"""The older binding, and the helpers that export in one call."""

import torch
from executorch.extension.export_util import export_to_edge, export_to_exec_prog, save_pte_program
from executorch.extension.pybindings.portable_lib import (
    _get_operator_names,
    _load_for_executorch,
    _load_for_executorch_from_buffer,
)


class Both(torch.nn.Module):
    def forward(self, x, y):
        return x * y, x - y


class Cast(torch.nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, x):
        return x.to(self.dtype), x.sum().to(self.dtype)


inputs = (torch.randn(2, 5), torch.randn(2, 5, requires_grad=True))
assert export_to_edge(Both(), inputs, verbose=False).methods == {"forward"}
program = export_to_exec_prog(Both(), inputs)
path = save_pte_program(program, "both")
expected = Both()(*inputs)
for module in (_load_for_executorch(path), _load_for_executorch_from_buffer(program.buffer)):
    for found in (module.forward(inputs), module(inputs), module.run_method("forward", inputs)):
        assert all(map(torch.equal, found, expected))
assert module.method_names() == ["forward"]
meta = module.method_meta("forward")
assert (meta.name(), meta.num_inputs()) == ("forward", 2)
x = torch.tensor([[0.0, 1.0], [2.5, -3.0]])
for dtype in (torch.bfloat16, torch.float16, torch.bool, torch.uint8, torch.int64):
    cast = export_to_exec_prog(Cast(dtype), (x.abs(),))
    found = _load_for_executorch_from_buffer(cast.buffer).forward((x.abs(),))
    assert all(map(torch.equal, found, Cast(dtype)(x.abs()))), dtype
    assert [value.dtype for value in found] == [dtype, dtype]
assert "aten::mul.out" in _get_operator_names()
