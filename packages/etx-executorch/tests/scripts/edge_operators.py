# SPDX-License-Identifier: BSD-3-Clause
"""Operators of the Edge dialect: their names, torch's behind them, in passes and partitioners."""

import torch
from executorch.exir import EdgeCompileConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.pass_base import ExportPass, PassResult

edge = exir_ops.edge
aten = torch.ops.aten
seen = []
SUPPORTED = "aten.relu.default"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x, y):
        return torch.cond(x.sum() > 0, lambda a: a.relu() + y, lambda a: a.sin(), (self.linear(x),))


def targets(module):
    found = [n.target for n in module.graph.nodes if n.op == "call_function"]
    for node in module.graph.find_nodes(op="get_attr"):
        found += targets(getattr(module, node.target)) if "lowered" not in node.target else []
    return [t for t in found if hasattr(t, "_schema")]


class Backend(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        seen.extend(node.target for node in edge_program.graph.nodes if node.op == "call_function")
        return PreprocessResult(processed_bytes=b"\0")


class TakesRelu(Partitioner):
    def partition(self, exported_program):
        spec = DelegationSpec(Backend.__name__)
        for node in exported_program.graph.nodes:
            if node.op == "call_function" and node.target.__name__ == SUPPORTED:
                assert node.name.startswith("aten_relu_default")
                node.meta["delegation_tag"] = "relu"
        return PartitionResult(exported_program, {"relu": spec})


class Negate(ExportPass):
    def call_operator(self, op, args, kwargs, meta):
        assert op.namespace != "aten" or isinstance(op, EdgeOpOverload), op
        if getattr(op, "_op", None) is aten.sin.default:
            op = edge.aten.neg.default
        return super().call_operator(op, args, kwargs, meta)


def insert_abs(module):
    for node in module.graph.find_nodes(op="call_function", target=edge.aten.relu.default):
        with module.graph.inserting_after(node):
            new = module.graph.call_function(edge.aten.abs.default, (node,))
        node.replace_all_uses_with(new, delete_user_cb=lambda user, new=new: user is not new)
    return PassResult(module, True)


# One operator, whichever way it is asked for.
relu = edge.aten.relu.default
assert relu is edge.aten.relu.default
assert (relu.__name__, str(relu), relu.name()) == ("aten.relu.default",) * 2 + ("aten::relu",)
assert relu._op is aten.relu.default
assert relu._schema is aten.relu.default._schema
assert isinstance(relu, torch._ops.OpOverload)
assert relu == aten.relu.default
assert aten.relu.default == relu
assert relu != edge.aten.sin.default
assert relu != aten.sin.default
assert hash(relu) == hash(aten.relu.default)
assert {aten.relu.default: 1}[relu] == {relu: 1}[aten.relu.default] == 1
assert relu in {aten.relu.default}
assert aten.relu.default in {relu}
assert aten.sin.default not in {relu}
assert edge.aten.add.Tensor.overloadpacket is aten.add
assert edge.aten.add.Tensor.to_out_variant() is aten.add.out
assert edge.dim_order_ops._clone_dim_order.default.__name__.startswith("dim_order_ops.")
x = torch.randn(3)
assert torch.equal(relu(x), x.relu())
assert torch.equal(edge.aten.add(x, x), x + x)
assert edge.aten.add.Tensor.tags == aten.add.Tensor.tags

# A program of the Edge dialect calls them, in nested graphs too, after each step.
inputs = (torch.ones(2, 4), torch.ones(2, 4))
exported = torch.export.export(Model().eval(), inputs)
config = EdgeCompileConfig(preserve_ops=[edge.aten.linear.default])
manager = to_edge(exported, compile_config=config)
for step in (manager, manager.transform([Negate(), insert_abs]), manager.to_backend(TakesRelu())):
    module = step.exported_program().graph_module
    assert all(isinstance(target, EdgeOpOverload) for target in targets(module)), targets(module)
    assert "executorch_exir_dialects_edge__ops_aten_" in module.code
names = {t.__name__ for t in targets(manager.transform([Negate()]).exported_program().graph_module)}
assert "aten.neg.default" in names
assert "aten.sin.default" not in names

# Backends see them, and what is left runs on torch's.
plain = torch.export.export(torch.nn.Sequential(torch.nn.Sigmoid(), torch.nn.ReLU()).eval(), (x,))
stepwise = to_edge(plain).to_backend(TakesRelu())
at_once = to_edge_transform_and_lower(
    plain, transform_passes=[Negate()], partitioner=[TakesRelu(), TakesRelu()]
)
assert [target.__name__ for target in seen] == ["aten.relu.default"] * 2
assert all(isinstance(target, EdgeOpOverload) for target in seen)
for lowered in (stepwise, at_once):
    (call,) = targets(lowered.exported_program().graph_module)
    assert call.__name__ == "aten.sigmoid.default"
result = manager.to_executorch()
assert any(op.name == "aten::relu" for op in result.executorch_program.execution_plan[0].operators)
