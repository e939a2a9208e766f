# SPDX-License-Identifier: BSD-3-Clause
"""Static int8 of the pt2e flow, as a tutorial of ExecuTorch has it."""

import torch
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge
from executorch.runtime import Runtime
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval()
sample = (torch.rand(1, 3, 8, 8),)
quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
prepared = prepare_pt2e(torch.export.export(model, sample).module(), quantizer)
prepared(*sample)
quantized = convert_pt2e(prepared)
program = to_edge(torch.export.export(quantized, sample)).to_executorch()
(result,) = Runtime.get().load_program(program.buffer).load_method("forward").execute(sample)
assert (result - model(*sample)).abs().max() < 0.02
