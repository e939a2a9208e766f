# SPDX-License-Identifier: BSD-3-Clause
"""Print how many of the test images a small net names right: float, int8 after and in training, on
ETX's kernels and on XNNPACK."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import etx_runtime
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge, to_edge_transform_and_lower
from etx_quant import finish_training, prepare_training, quantize
from torch.fx import GraphModule
from torch.nn import functional as F

TESTS = Path(__file__).parents[1] / "packages" / "etx-quant" / "tests"
sys.path.insert(0, str(TESTS))

from digits import digits, train  # noqa: E402

BATCH = ({0: torch.export.Dim("batch", min=2, max=512)},)
STATIC, TRAINED = 0.5, 0.2


def main() -> int:
    """Train, quantize, run; fail where more is lost than the limits."""
    images, labels, tried, names = digits()
    model = train(images, labels)
    calibration = [(batch,) for batch in images.split(64)[:8]]
    static = quantize(model, calibration, dynamic_shapes=BATCH)
    prepared = prepare_training(copy.deepcopy(model), (images[:64],), dynamic_shapes=BATCH)
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(prepared.parameters(), 1e-3, momentum=0.9)
    for batch in torch.randperm(len(labels)).split(64):
        optimizer.zero_grad()
        F.cross_entropy(prepared(images[batch]), labels[batch]).backward()
        optimizer.step()

    def percent(scores: torch.Tensor) -> float:
        return 100 * float((scores.argmax(-1) == names).float().mean())

    def on_device(module: GraphModule) -> list[float]:
        def program() -> torch.export.ExportedProgram:
            return torch.export.export(module, (tried[:8],), dynamic_shapes=BATCH)

        delegated = to_edge_transform_and_lower(program(), partitioner=[XnnpackPartitioner()])
        files = (to_edge(program()).to_executorch(), delegated.to_executorch())
        return [percent(etx_runtime.load(f.buffer, outputs="torch")(tried)) for f in files]

    expected, wrong = percent(model(tried)), False
    print(f"float: {expected:.2f} %")
    for name, module, limit in (
        ("int8", static, STATIC),
        ("int8, trained", finish_training(prepared), TRAINED),
    ):
        own, delegated = on_device(module)
        wrong |= max(abs(expected - own), abs(expected - delegated)) > limit
        print(f"{name}: {own:.2f} % on ETX's kernels, {delegated:.2f} % on XNNPACK")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
