# SPDX-License-Identifier: BSD-3-Clause
"""A model lowered to XNNPACK, in float32 and in int8."""

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.devtools.backend_debug import get_delegation_info
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

torch.manual_seed(0)
layers = (torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3))
model = torch.nn.Sequential(*layers).eval()
sample = (torch.rand(1, 3, 32, 32),)
quantizer = XNNPACKQuantizer()
quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
prepared = prepare_pt2e(torch.export.export(model, sample).module(), quantizer)
prepared(*sample)
for module, tolerance in ((model, 1e-5), (convert_pt2e(prepared), 0.05)):
    exported = torch.export.export(module, sample)
    edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    info = get_delegation_info(edge.exported_program().graph_module)
    assert info.num_delegated_subgraphs == 1
    program = Runtime.get().load_program(edge.to_executorch().buffer)
    (result,) = program.load_method("forward").execute(sample)
    assert (result - model(*sample)).abs().max() < tolerance
