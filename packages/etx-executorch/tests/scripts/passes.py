# SPDX-License-Identifier: BSD-3-Clause
"""A small library of passes: operators, scalars, nested graphs, getitem, whole programs."""

import torch
from executorch.exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.pass_base import (
    ExportedProgramPassBase,
    ExportedProgramPassResult,
    ExportPass,
    NodeMetadata,
    PassResult,
    ProxyValue,
)
from executorch.exir.pass_manager import PassManager

edge = exir_ops.edge


class Swap(ExportPass):
    """One operator for another, everywhere; notes what it is called with."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def call_operator(self, op, args, kwargs, meta):
        assert isinstance(meta, NodeMetadata)
        self.seen.append(op)
        if op == edge.aten.sin.default:
            assert isinstance(args[0], ProxyValue)
            assert args[0].is_tensor()
            assert args[0].to_tensor().dtype == torch.float32
            return super().call_operator(edge.aten.cos.default, args, kwargs, meta)
        return super().call_operator(op, args, kwargs, meta)


class Double(ExportPass):
    """Inserts an operator before every output of the outer graph."""

    depth = 0

    def call_submodule(self, graph_module, inputs):
        self.depth += 1
        result = super().call_submodule(graph_module, inputs)
        self.depth -= 1
        return result

    def output(self, results, meta):
        if self.depth > 1:
            return super().output(results, meta)
        doubled = [
            self.call_operator(edge.aten.add.Tensor, (value, value), {}, NodeMetadata({}))
            for value in results
        ]
        return super().output(doubled, meta)


class CountItems(ExportPass):
    def __init__(self):
        super().__init__()
        self.items = self.inputs_seen = 0

    def call_getitem(self, value, key, meta):
        self.items += 1
        return super().call_getitem(value, key, meta)

    def placeholder(self, name, arg, meta):
        self.inputs_seen += 1
        return super().placeholder(name, arg, meta)


class Rename(ExportedProgramPassBase):
    def call(self, exported_program):
        for node in exported_program.graph.nodes:
            node.meta["seen"] = True
        return ExportedProgramPassResult(exported_program, True)


def in_place(module):
    """A pass may also be a function."""
    return PassResult(module, False)


class Branch(torch.nn.Module):
    def forward(self, x):
        y, indices = torch.topk(torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)), 2)
        return y + indices


class Loop(torch.nn.Module):
    def forward(self, x):
        def body(i, y):
            return i + 1, torch.sin(y)

        return torch._higher_order_ops.while_loop(lambda i, y: i < 3, body, (torch.tensor(0), x))[1]


def run(program, x):
    from executorch.runtime import Runtime

    return Runtime.get().load_program(program.buffer).load_method("forward").execute([x])[0]


x = torch.rand(4, 5)
swap, count = Swap(), CountItems()
program = to_edge(torch.export.export(Branch(), (x,))).transform([swap, count, in_place, Rename()])
assert edge.aten.sin.default in swap.seen
assert count.items == 3
assert count.inputs_seen == 3
for sign in (1, -1):
    values, indices = torch.topk(torch.cos(sign * x), 2)
    torch.testing.assert_close(run(program.to_executorch(), sign * x), values + indices)

lowered = to_edge_transform_and_lower(
    torch.export.export(Loop(), (x,)), transform_passes=[PassManager([Swap(), Double()])]
)
torch.testing.assert_close(run(lowered.to_executorch(), x), 2 * x.cos().cos().cos())
once = to_edge(torch.export.export(Loop(), (x,))).to_executorch(
    ExecutorchBackendConfig(passes=[Swap()])
)
torch.testing.assert_close(run(once, x), x.cos().cos().cos())
assert Swap()(program.exported_program().graph_module).modified
