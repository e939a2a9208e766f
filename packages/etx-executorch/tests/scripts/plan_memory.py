# SPDX-License-Identifier: BSD-3-Clause
"""Specs of nodes, plans over a graph, algorithms and memories of one's own in a file."""

import pytest
import torch
from executorch.exir import ExecutorchBackendConfig, memory, to_edge
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.error import InternalError
from executorch.exir.memory_planning import (
    MemoryAlgoResult,
    MemoryPlanningAlgorithmSuite,
    SpecAllocResult,
    Verifier,
    apply_algo,
    collect_specs_from_nodes,
    greedy,
    naive,
)
from executorch.exir.pass_manager import PassManager
from executorch.exir.passes import MemoryPlanningPass, SpecPropPass, ToOutVarPass
from executorch.exir.passes.reinplace import reinplace_pass
from executorch.exir.schema import DeviceType
from executorch.exir.tensor import TensorSpec
from executorch.runtime import Runtime

aten = torch.ops.aten
ALLOCATE = (True, True, True)


class Model(torch.nn.Module):
    def forward(self, a, b):
        for _ in range(4):
            a = a * b + a
        return a.sigmoid(), torch.cond(b.sum() > 0, lambda x: x.sin() * x, lambda x: x.cos(), (b,))


inputs = (torch.randn(5, 7), torch.ones(5, 7))
expected = Model()(*inputs)
exported = torch.export.export(Model(), inputs)


def planned(planner):
    module = to_edge(exported).exported_program().graph_module
    return PassManager([SpecPropPass(), ToOutVarPass(), planner])(module).graph_module


def executed(planner, manager=None):
    config = ExecutorchBackendConfig(memory_planning_pass=planner)
    done = (manager or to_edge(exported)).to_executorch(config)
    method = Runtime.get().load_program(done.buffer).load_method("forward")
    for result, reference in zip(method.execute(inputs), expected, strict=True):
        torch.testing.assert_close(result, reference)
    return done


def sizes_of(done):
    return done.executorch_program.execution_plan[0].non_const_buffer_sizes


# A graph of out variants with memory for each result, planned by either algorithm.
for algorithm, shares in ((naive, False), (greedy, True)):
    module = planned(MemoryPlanningPass(MemoryPlanningAlgorithmSuite([algorithm])))
    made = module.graph.find_nodes(op="call_function", target=memory.alloc)
    assert made
    assert all(node.meta["spec"].mem_offset % 16 == 0 for node in made)
    assert module.graph.find_nodes(op="call_function", target=aten.mul.out)
    verifier = Verifier(module, *ALLOCATE)
    assert bool(verifier.verify_storage_reuse()) == shares
    verifier.verify_graph_input_output()
    for result, reference in zip(module(*inputs), expected, strict=True):
        torch.testing.assert_close(result, reference)

# The verifier notices what it is for.
specs = sorted(collect_specs_from_nodes(module.graph.nodes), key=lambda spec: spec.lifetime)
one, other = specs[:2]
assert Verifier.lifetime_overlap(one, other)
other.mem_offset = one.mem_offset
with pytest.raises(InternalError, match="overlap in memory and in time"):
    verifier.verify_storage_reuse()
for flags in ((False, True, True), (True, False, True)):
    Verifier(planned(MemoryPlanningPass(greedy, False, *flags)), *flags).verify_graph_input_output()
    with pytest.raises(InternalError, match="has memory"):
        Verifier(module, *flags).verify_graph_input_output()

# A spec, and one within another.
spec = TensorSpec.from_tensor(torch.empty(3, 5, dtype=torch.float16))
assert (spec.shape, spec.nbytes(), spec.allocated_memory, spec.realign(4)) == ([3, 5], 30, 32, 32)
inner = TensorSpec.from_tensor(torch.empty(2))
inner.storage_base, inner.storage_base_offset = spec, 8
spec.lifetime, inner.lifetime = [0, 1], [3, 4]
places = greedy(16, {spec, inner}).spec_dict
assert places[inner].mem_offset == places[spec].mem_offset + 8
assert spec.lifetime == [0, 4]

# Sizes that may change are at their bounds; the file has the same.
dims = {"x": {0: torch.export.Dim("n", max=9)}}
dynamic = to_edge(
    torch.export.export(torch.nn.ReLU().eval(), (torch.ones(4, 2),), dynamic_shapes=(dims["x"],))
)
(bounded,) = dynamic.transform([SpecPropPass()]).exported_program().graph.output_node().meta["spec"]
assert (bounded.shape, bounded.is_upper_bound_tensor) == ([9, 2], True)

# Devices have memories of their own.
module = to_edge(exported).exported_program().graph_module
SpecPropPass()(module)
away = module.graph.output_node().meta["spec"][0]
away.device = DeviceType.CUDA
suite = MemoryPlanningAlgorithmSuite([greedy])
sizes = apply_algo(suite, module, 16, enable_non_cpu_memory_planning=True)
assert (away.mem_id, away.mem_offset, sizes[2]) == (2, 0, 144)
assert [each.buffer_idx for each in module.meta["non_const_buffer_device"]] == [2]


# An algorithm of one's own places what the file needs.
def downwards(alignment, specs, graph_module, graph_signature, extra_padding=0):
    assert graph_module.graph.find_nodes(op="placeholder")
    asked.append(len(specs))
    result, at = MemoryAlgoResult(), 0
    for spec in specs:
        result.spec_dict[spec] = SpecAllocResult(1, 0, at)
        at += -(-spec.allocated_memory // alignment) * alignment
    result.bufsizes = [0, at]
    return result


asked = []
mine = executed(MemoryPlanningPass(downwards))
assert asked
assert sizes_of(mine)[1] > sizes_of(executed(MemoryPlanningPass(greedy)))[1]
assert sizes_of(mine) == sizes_of(executed(MemoryPlanningPass(naive)))
executed({"forward": MemoryPlanningPass(MemoryPlanningAlgorithmSuite([naive, downwards]))})


# A pass that chooses memories: the file has them.
class Pools(MemoryPlanningPass):
    def __init__(self, label):
        super().__init__(MemoryPlanningAlgorithmSuite([greedy]))
        self.label = label

    def run(self, graph_module, graph_signature=None):
        for node in graph_module.graph.nodes:
            if node.target == aten.mul.out:
                node.meta["spec"].mem_id = 3
        return super().run(graph_module, graph_signature)


done = executed(Pools("SRAM"))
assert sizes_of(done)[3] >= 144
for node in done.exported_program().graph.nodes:
    if node.op == "call_function" and node.target == aten.mul.Tensor:
        assert node.meta["spec"].mem_id == 3
assert done.exported_program().graph.find_nodes(op="placeholder")[0].meta["spec"].mem_id == 1

# Operators that work in place, in the graph; the file computes the same.
manager = to_edge(exported)
program = manager.exported_program()
reinplace_pass(program, {exir_ops.edge.aten.add.Tensor, exir_ops.edge.aten.sigmoid.default})
names = [node.target.__name__ for node in program.graph.nodes if node.op == "call_function"]
assert names.count("aten.sigmoid_.default") == 1
assert "aten.add_.Tensor" in names
for result, reference in zip(program.module()(*inputs), expected, strict=True):
    torch.testing.assert_close(result, reference)
executed(MemoryPlanningPass(), manager)
