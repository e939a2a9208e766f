# SPDX-License-Identifier: BSD-3-Clause
"""Drawn networks on the simulator of an Ethos-U: what it makes is what the quantized model makes.

`test_drawn_npu.py FIRST COUNT` runs these numbers by hand.
"""

from __future__ import annotations

import os
import sys

import etx_runtime
import numpy as np
import pytest
import torch
from drawn_networks import draw_network
from etx_backend_arm.ethos_u.backend import EthosUPartitioner, EthosUQuantizer
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_exir import to_edge_transform_and_lower
from etx_exir.ir.delegate_call import CALL_DELEGATE
from etx_quant import quantize

SPEC = EthosUCompileSpec("ethos-u55-128")
MORE = ("part", "part", "parts", "rows", "groups", "transposed")
FIRST = int(os.environ.get("ETX_SEED", "0")) * 10
FOUND = (229, 287, 292, 566, 992)
"""Of the first thousand those that were wrong once, or read or wrote what is not theirs."""
LEAST = 18.0
"""Decibels between both: each of up to eight operators rounds in its own way."""


def decibels(seed: int) -> tuple[float, int]:
    """Return how near a network on the NPU is to the quantized one, and its delegates."""
    net, inputs = draw_network(seed, MORE)
    model = quantize(net, inputs, EthosUQuantizer(SPEC))
    program = torch.export.export(model, inputs[0])
    edge = to_edge_transform_and_lower(program, partitioner=[EthosUPartitioner(SPEC)])
    nodes = edge.exported_program().graph.nodes
    count = sum(node.target is CALL_DELEGATE for node in nodes)
    run = etx_runtime.load(bytes(edge.to_executorch().buffer))
    x = inputs[0][0]
    expected = model(x).detach().numpy().astype(np.float64)
    noise = np.asarray(run(x.numpy())) - expected
    power = max(float((noise**2).sum()), 1e-30)
    return 10 * float(np.log10(max((expected**2).sum(), 1e-20) / power)), count


@pytest.mark.parametrize("seed", [*range(FIRST, FIRST + 2), *FOUND])
def test_network_is_that_of_the_quantized_model(seed: int) -> None:
    near, count = decibels(seed)
    assert count >= 1
    assert near > LEAST


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])):
        try:
            near, count = decibels(number)
            said = "" if near > LEAST else "  LOW"
            print(f"{number}: {near:.1f} dB, {count} delegates{said}", flush=True)
        except Exception as error:
            print(f"{number}: {type(error).__name__}: {str(error)[:300]}", flush=True)
