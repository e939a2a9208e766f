# SPDX-License-Identifier: BSD-3-Clause
"""Weights of a delegate in a file of their own, by a tag."""

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.passes.external_constants_pass import (
    delegate_external_constants_pass_unlifted,
)
from executorch.extension.flat_tensor.serialize.serialize import _deserialize_to_flat_tensor
from executorch.extension.pybindings import portable_lib

torch.manual_seed(0)
model = torch.nn.Linear(64, 64).eval()
sample = (torch.rand(1, 64),)
unlifted = torch.export.export(model, sample).module()
delegate_external_constants_pass_unlifted(module=unlifted, gen_tag_fn=lambda node: "weights")
exported = torch.export.export(unlifted, sample, strict=True)
edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
done = edge.to_executorch()
outside = bytes(done._tensor_data["weights"])
assert len(_deserialize_to_flat_tensor(outside).named_data) == 2
module = portable_lib._load_for_executorch_from_buffer(done.buffer, outside)
assert torch.allclose(module.forward(sample)[0], model(*sample), atol=1e-5)
