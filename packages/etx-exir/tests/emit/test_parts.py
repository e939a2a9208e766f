# SPDX-License-Identifier: BSD-3-Clause
"""Parts of what a caller gives are read where they lie; what a caller reads is a copy."""

import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, MemoryPlanningPass, to_edge
from on_device import assert_same, export, on_device, operators

torch.manual_seed(0)
X = torch.randn(4, 3, 8, 16)
PART = "etx::view_at.default"
PLAN = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
WEIGHT = torch.randn(4, 16)


def compiled(function, inputs=(X,), target="etx"):
    config = ExecutorchBackendConfig(target=target, memory_planning_pass=PLAN)
    return to_edge(export(function, inputs)).to_executorch(config).buffer


PARTS = {
    "a row": (lambda x: x[2].exp(), 1),
    "the last row": (lambda x: x[-1].exp(), 1),
    "rows": (lambda x: x[1:3].exp(), 1),
    "of a part": (lambda x: x[1][2].exp() + x[1, 0:1].exp(), 3),
    "all rows": (lambda x: sum(row.exp() for row in x.unbind(0)), 4),
    "pieces": (lambda x: x.split([1, 3])[1].exp(), 2),
    "behind a view": (lambda x: x.view(12, 128)[5].exp(), 1),
    "of columns": (lambda x: x[:, 1].exp(), 0),
    "with steps": (lambda x: x[::2].exp(), 0),
    "returned": (lambda x: x[1], 0),
    "returned and read": (lambda x: (x[1], x[1].exp()), 0),
    "returned behind a view": (lambda x: x[1].view(-1), 1),
}


@pytest.mark.parametrize("case", PARTS)
def test_parts_of_inputs(case):
    function, count = PARTS[case]
    buffer = compiled(function)
    assert operators(buffer).count(PART) == count
    assert PART not in operators(compiled(function, target="executorch"))
    model = etx_runtime.load(buffer)
    for _ in range(2):
        x = torch.randn_like(X)
        given = on_device((x,))
        assert_same(model(*given), function(x))


def test_what_is_returned_stays_when_the_input_changes():
    model = etx_runtime.load(compiled(lambda x: x[1].view(-1)))
    (given,) = on_device((X.clone(),))
    first = torch.as_tensor(model(given)).clone()
    given[:] = 0
    assert torch.equal(first, X[1].reshape(-1))


def test_state_that_takes_part_of_an_input():
    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.zeros(3, 8, 16))

        def forward(self, x):
            before = self.kept.clone()
            self.kept.copy_(x[1])
            return before + x[2]

    model, eager = etx_runtime.load(compiled(Last())), Last()
    for _ in range(3):
        x = torch.randn_like(X)
        assert_same(model(*on_device((x,))), eager(x))


def test_input_that_is_written_to():
    def step(x, y):
        part = x[1]
        x.add_(1)
        y.copy_(part.exp())
        return part * 2

    inputs = X.clone(), torch.zeros(3, 8, 16)
    buffer = compiled(step, inputs)
    given = on_device(tuple(value.clone() for value in inputs))
    result = etx_runtime.load(buffer)(*given)
    expected = tuple(value.clone() for value in inputs)
    want = step(*expected)
    assert_same(result, want)
