# SPDX-License-Identifier: BSD-3-Clause
"""Passes reach the graphs of maps and scans, and keep dynamic sizes."""

import torch
from executorch.exir import to_edge
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import ExportPass
from executorch.runtime import Runtime
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan

edge = exir_ops.edge


class CosForSin(ExportPass):
    def call_operator(self, op, args, kwargs, meta):
        if op == edge.aten.sin.default:
            op = edge.aten.cos.default
        return super().call_operator(op, args, kwargs, meta)


class Rows(torch.nn.Module):
    def forward(self, rows, y):
        return map_rows(lambda row, y: torch.sin(row) + y, rows, y)


class Running(torch.nn.Module):
    def forward(self, rows):
        return scan(lambda total, row: (total + torch.sin(row), total * row), torch.zeros(3), rows)


class Sizes(torch.nn.Module):
    def forward(self, rows):
        return torch.sin(rows).reshape(rows.shape[0] * 3) + rows.shape[0]


def run(model, example, inputs, dynamic=None):
    exported = torch.export.export(model, example, dynamic_shapes=dynamic)
    program = to_edge(exported).transform([CosForSin()]).to_executorch()
    return Runtime.get().load_program(program.buffer).load_method("forward").execute(inputs)


rows, y = torch.rand(4, 3), torch.rand(3)
torch.testing.assert_close(run(Rows(), (rows, y), [rows, y])[0], rows.cos() + y)
torch.testing.assert_close(run(Running(), (rows,), [rows])[0], rows.cos().sum(0))
more = torch.rand(7, 3)
(found,) = run(Sizes(), (rows,), [more], {"rows": {0: torch.export.Dim("n", max=9)}})
torch.testing.assert_close(found, more.cos().reshape(-1) + 7)
