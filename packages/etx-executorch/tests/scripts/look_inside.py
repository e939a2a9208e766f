# SPDX-License-Identifier: BSD-3-Clause
"""Programs as text, their tables, files as bytes."""

import io

import executorch.exir as exir
import torch
from executorch.exir._serialize import _PTEFile, _serialize_pte_binary
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.backend.utils import DelegateMappingBuilder
from executorch.exir.print_program import inspect_node, pretty_print, print_program
from executorch.exir.scalar_type import ScalarType
from executorch.exir.schema import Program
from executorch.exir.tracer import Value

assert Value is not None
model = torch.nn.Linear(3, 3)
edge = exir.to_edge(torch.export.export(model, (torch.ones(1, 3),)))
program = edge.to_executorch(exir.ExecutorchBackendConfig(emit_stacktrace=True))
tables = program.executorch_program
assert isinstance(tables, Program)
assert tables.execution_plan[0].values[0].val.scalar_type == ScalarType.FLOAT
text = io.StringIO()
print_program(tables, out=text)
pretty_print(tables.execution_plan[0], out=text)
program.dump_executorch_program(verbose=True, out=text)
assert "aten::linear" in text.getvalue()
node = next(n for n in edge.exported_program().graph.nodes if n.op == "call_function")
assert "--> " in inspect_node(edge.exported_program().graph, node)
data = bytes(_serialize_pte_binary(_PTEFile(program=tables)))
again = deserialize_pte_binary(data).program
assert again.execution_plan[0].operators == tables.execution_plan[0].operators
builder = DelegateMappingBuilder(generated_identifiers=True)
assert builder.insert_delegate_mapping_entry(handles=[3]) == 0
assert exir.emit_program(edge.exported_program()).program.execution_plan[0].name == "forward"
