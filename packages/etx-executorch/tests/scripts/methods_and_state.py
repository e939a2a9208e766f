# SPDX-License-Identifier: BSD-3-Clause
"""Several methods, constants, dynamic sizes, weights outside, state and its initial values."""

import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from executorch.extension.pybindings.portable_lib import _load_for_executorch
from executorch.runtime import Runtime


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.tensor([5.0]))

    def forward(self, x):
        self.count.add_(x)
        return self.count * 1


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        return x @ self.weight


scale, batch = Scale(), torch.export.Dim("batch", min=1, max=8)
edge = to_edge(
    {
        "count": torch.export.export(Counter(), (torch.ones(1),)),
        "scale": torch.export.export(scale, (torch.randn(2, 4),), dynamic_shapes={"x": {0: batch}}),
    },
    constant_methods={"version": 3, "names": ["a", "b"]},
)
program = edge.to_executorch(
    ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["count"])])
)
assert program.methods == {"count", "scale"}
assert program.config_methods == {"version", "names"}
loaded = Runtime.get().load_program(program.buffer)
assert loaded.method_names == {"count", "scale", "version", "names"}
count = loaded.load_method("count")
assert [float(count.execute([torch.ones(1)])[0]) for _ in range(3)] == [6, 7, 8]
rows = torch.randn(7, 4)
torch.testing.assert_close(loaded.load_method("scale").execute([rows])[0], scale(rows).detach())
assert loaded.load_method("version").execute([]) == [3]

outside = edge.to_executorch(ExecutorchBackendConfig(external_constants=lambda node: "weights"))
outside.write_tensor_data_to_file(".")
outside.save("outside.pte")
(found,) = _load_for_executorch("outside.pte", "weights.ptd").run_method("scale", [rows])
torch.testing.assert_close(found, scale(rows).detach())
