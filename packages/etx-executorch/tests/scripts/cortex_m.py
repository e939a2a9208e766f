# SPDX-License-Identifier: BSD-3-Clause
"""A quantized model as operators of a Cortex-M."""

import torch
from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from executorch.backends.cortex_m.target_config import CortexM, CortexMTargetConfig
from executorch.exir import ExecutorchBackendConfig, to_edge
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2)).eval()
inputs = (torch.rand(1, 3, 8, 8),)
prepared = prepare_pt2e(torch.export.export(model, inputs).module(), CortexMQuantizer())
prepared(*inputs)
quantized = convert_pt2e(prepared)
names = [str(n.target) for n in quantized.graph.nodes]
assert sum("dequantize_per_channel" in name for name in names) == 2  # the weight, an int32 bias
config = CortexMTargetConfig.from_target_string("cortex-m4")
assert config == CortexMTargetConfig(cpu=CortexM.M4)
edge = to_edge(
    torch.export.export(quantized, inputs), compile_config=cortex_m_edge_compile_config()
)
manager = CortexMPassManager(edge.exported_program(), target_config=config)
edge._edge_programs["forward"] = manager.transform()
calls = {str(n.target) for n in edge.exported_program().graph.nodes if n.op == "call_function"}
assert any("cortex_m.quantized_conv2d.default" in call for call in calls), calls
assert not any("nhwc" in call or "quantized_linear" in call for call in calls), calls
assert not any("quantized_decomposed" in call for call in calls), calls
edge.to_executorch(ExecutorchBackendConfig()).save("net.pte")
