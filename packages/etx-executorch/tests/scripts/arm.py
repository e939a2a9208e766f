# SPDX-License-Identifier: BSD-3-Clause
"""A quantized model as a TOSA graph."""

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.devtools.backend_debug import get_delegation_info
from executorch.exir import to_edge_transform_and_lower
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval()
sample = (torch.rand(1, 3, 8, 8),)
spec = TosaCompileSpec("TOSA-1.0+INT")
quantizer = TOSAQuantizer(spec)
quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
prepared = prepare_pt2e(torch.export.export(model, sample).module(), quantizer)
prepared(*sample)
exported = torch.export.export(convert_pt2e(prepared), sample)
edge = to_edge_transform_and_lower(exported, partitioner=[TOSAPartitioner(spec)])
info = get_delegation_info(edge.exported_program().graph_module)
assert info.num_delegated_subgraphs == 1
