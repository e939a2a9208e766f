# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from programs import Calls, fitted


@pytest.mark.parametrize(
    ("put", "name"),
    [
        (lambda x, i: (x * 2).index_put((i,), x[:2]), "aten::index_put_"),
        (lambda x, i: (x * 2).index_put((i,), x[0]), "aten::index_put_"),
        (lambda x, i: (x * 2).index_put((x > 0,), x[0, 0]), "aten::index_put.out"),
        (lambda x, i: (x * 2).index_put((i, i), x[0, :2]), "aten::index_put.out"),
    ],
)
def test_rows_are_written_in_place_as_the_kernel_takes_them(put, name):
    inputs = (torch.randn(3, 4), torch.tensor([-1, 0]))
    fitted(Calls(put), inputs)
    manager = to_edge(torch.export.export(Calls(put), inputs))
    theirs = manager.to_executorch(ExecutorchBackendConfig(target="executorch"))
    (plan,) = theirs.executorch_program.execution_plan
    keys = [".".join(filter(None, (op.name, op.overload))) for op in plan.operators]
    assert [key for key in keys if "index_put" in key] == [name]
