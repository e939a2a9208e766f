# SPDX-License-Identifier: BSD-3-Clause
"""ETX as runners of the peers' harness: with its portable kernels, and through XNNPACK.

Nothing but NumPy is imported at the top: what a process holds is measured. Run as a script with the
name of a model and a file, it lowers the model.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np


class Etx:
    """What the harness asks of a runner: prepare where torch is, then load, bind, run, outputs."""

    name = "etx"
    packages: tuple[str, ...] = ("etx_runtime", "etx_kernels_portable")
    quants = (None, "static", "dynamic")

    def __init__(self, out: str) -> None:
        self.file = str(Path(out, "model.pte"))

    def prepare(self, spec: Any, module: Any, inputs: tuple[Any, ...]) -> dict[str, Any]:
        """Lower in a process of its own, so that what is measured imports no compiler."""
        command = [sys.executable, "-W", "ignore", __file__, self.name, spec.name, self.file]
        subprocess.run(command, check=True)
        return {"files": ["model.pte"]}

    def load(self, artifact: dict[str, Any], threads: int) -> None:
        import etx_runtime

        etx_runtime.set_num_threads(threads)
        program = etx_runtime.Runtime.get().load_program(self.file)
        self.call = program.load_method("forward").flat_caller(borrow=True)

    def bind(self, inputs: list[np.ndarray]) -> None:
        self.inputs = [np.ascontiguousarray(x) for x in inputs]

    def run(self) -> None:
        self.results = self.call(*self.inputs)

    def outputs(self) -> list[np.ndarray]:
        several = isinstance(self.results, (tuple, list))
        return list(self.results) if several else [self.results]


class EtxXnnpack(Etx):
    """The same with what XNNPACK can compute in its delegate."""

    name = "etx_xnnpack"
    packages = (*Etx.packages, "etx_backend_xnnpack")


class EtxBf16(Etx):
    """The portable kernels with the weights of layers in bfloat16."""

    name = "etx_bf16"
    quants = (None,)


RUNNERS = {kind.name: kind for kind in (Etx, EtxXnnpack, EtxBf16)}


def quantized(module: Any, inputs: tuple[Any, ...], kind: str) -> Any:
    """Quantize as the harness does for its other runners: int8, a scale for each channel."""
    from etx_quant import XNNPACKQuantizer, get_symmetric_quantization_config, quantize
    from runners import _calib

    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=kind == "dynamic")
    return quantize(module, _calib(inputs), XNNPACKQuantizer().set_global(config))


def lower(runner: str, model: str, path: str) -> None:
    """Lower a model of the harness; inputs are read where they lie, as with its other runners."""
    import torch
    from etx_exir import ExecutorchBackendConfig, MemoryPlanningPass, to_edge_transform_and_lower
    from models import MODELS

    partitioner = None
    if runner == EtxXnnpack.name:
        from etx_backend_xnnpack.partition import XnnpackPartitioner

        partitioner = [XnnpackPartitioner()]
    spec = MODELS[model]
    module, inputs = spec.make()
    plan = MemoryPlanningPass(alloc_graph_input=False)
    with torch.no_grad():
        if spec.quant is not None:
            module = quantized(module, inputs, spec.quant)
        program = torch.export.export(module, inputs, strict=False)
        edge = to_edge_transform_and_lower(program, partitioner=partitioner)
        precision = "bf16" if runner == EtxBf16.name else "float32"
        config = ExecutorchBackendConfig(memory_planning_pass=plan, precision=precision)
        edge.to_executorch(config).save(path)


if __name__ == "__main__":
    lower(sys.argv[1], sys.argv[2], sys.argv[3])
