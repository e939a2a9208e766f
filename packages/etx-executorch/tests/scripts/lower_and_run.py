# SPDX-License-Identifier: BSD-3-Clause
"""Lower with options, write the file in each way, run it on the runtime."""

from pathlib import Path

import torch
from executorch.exir import (
    EdgeCompileConfig,
    EdgeProgramManager,
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    to_edge,
)
from executorch.exir.capture._config import EdgeCompileConfig as SameConfig
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy, naive
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.sym_shape_eval_pass import ConstraintBasedSymShapeEvalPass
from executorch.runtime import Runtime, Verification

model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.GELU(), torch.nn.Linear(4, 2)).eval()
example = (torch.randn(3, 6),)
assert SameConfig is EdgeCompileConfig
edge = to_edge(
    torch.export.export(model, example),
    compile_config=EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=True),
)
assert isinstance(edge, EdgeProgramManager)
sizes = set()
for algorithm in (greedy, naive, MemoryPlanningAlgorithmSuite([greedy, naive])):
    planner = MemoryPlanningPass(memory_planning_algo=algorithm, alloc_graph_output=False)
    program = edge.to_executorch(
        ExecutorchBackendConfig(
            memory_planning_pass=planner,
            sym_shape_eval_pass=ConstraintBasedSymShapeEvalPass(),
            do_quant_fusion_and_const_prop=True,
            extract_delegate_segments=True,
        )
    )
    assert isinstance(program, ExecutorchProgramManager)
    sizes.add(program.executorch_program.execution_plan[0].non_const_buffer_sizes[1])
    with open("model.pte", "wb") as file:
        program.write_to_file(file)
    assert Path("model.pte").read_bytes() == program.buffer
assert len(program.executorch_program.constant_buffer) == 5
assert min(sizes) > 0

runtime = Runtime.get()
assert "aten::gelu.out" in runtime.operator_registry.operator_names
loaded = runtime.load_program("model.pte", verification=Verification.Minimal)
method = loaded.load_method("forward")
(found,) = method.execute([example[0]])
torch.testing.assert_close(found, model(*example), rtol=1e-5, atol=1e-5)
assert method.metadata.input_tensor_meta(0).sizes() == (3, 6)
assert loaded.metadata("forward").num_outputs() == 1
