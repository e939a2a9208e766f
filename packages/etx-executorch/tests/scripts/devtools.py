# SPDX-License-Identifier: BSD-3-Clause
"""A record, a dump with values, and what the Inspector says of them."""

import copy
import io

import torch
from executorch.devtools import Inspector, generate_etrecord, parse_etrecord
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer
from executorch.runtime import Runtime

model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
inputs = (torch.randn(2, 4),)
exported = torch.export.export(model, inputs)
edge = to_edge_transform_and_lower(exported)
kept = copy.deepcopy(edge)
finished = edge.to_executorch()
generate_etrecord("kept.etrecord", kept, finished)
record = parse_etrecord("kept.etrecord")
assert record.edge_dialect_program is not None

recorded = to_edge_transform_and_lower(exported, generate_etrecord=True).to_executorch()
record = recorded.get_etrecord()
record.update_representative_inputs([inputs])
record.save("net.etrecord")

module = _load_for_executorch_from_buffer(
    recorded.buffer, enable_etdump=True, debug_buffer_size=4096
)
(output,) = module.forward(inputs)
assert torch.allclose(output, model(*inputs))
assert module.has_etdump()
module.write_etdump_result_to_file("net.etdp", "net.bin")

inspector = Inspector(etdump_path="net.etdp", etrecord="net.etrecord", debug_buffer_path="net.bin")
text = io.StringIO()
inspector.print_data_tabular(file=text)
assert "native_call_linear.out" in str([e.name for e in inspector.event_blocks[-1].events])
names = [name for event in inspector.event_blocks[-1].events for name in event.op_types]
assert "aten.relu.default" in names
assert inspector.get_exported_program() is not None

program = Runtime.get().load_program(finished.buffer, enable_etdump=True, debug_buffer_size=4096)
program.load_method("forward").execute(inputs)
program.write_etdump_result_to_file("other.etdp", "other.bin")
assert Inspector(etdump_path="other.etdp", etrecord="kept.etrecord").event_blocks
