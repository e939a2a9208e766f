# SPDX-License-Identifier: BSD-3-Clause
"""Something true of this package, run where only what it declares is installed."""

from __future__ import annotations

import torch
from etx_exir import to_edge


class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y


exported = torch.export.export(Add(), (torch.ones(3), torch.ones(3)))
program = to_edge(exported).to_executorch()
(operator,) = program.executorch_program.execution_plan[0].operators
assert (operator.name, operator.overload) == ("aten::add", "out")
