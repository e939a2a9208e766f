# SPDX-License-Identifier: BSD-3-Clause
"""Both compilers and both runtimes in one process: `one_process.py FOLDER SIDE...`, imported so.

Each side writes its files into FOLDER, each runtime runs all of them, and each compiler's graphs
run in eager mode; every result is compared with that of the model. Prints the files' digests and
what the process registered more than once.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # quantized_decomposed of torch itself
from torch import Tensor, nn

quantized = torch.ops.quantized_decomposed
TOLERANCE = 1e-5


class Layouts(nn.Module):
    """Both change the layout of memory with operators of their own."""

    def forward(self, x: Tensor) -> Tensor:
        last = x.to(memory_format=torch.channels_last)
        return last.to(torch.float64).contiguous().to(torch.float32) * 2


class Quantized(nn.Module):
    """Quantized operators outside of delegates."""

    def forward(self, x: Tensor) -> Tensor:
        small = quantized.quantize_per_tensor(x, 0.05, 3, -128, 127, torch.int8)
        return quantized.dequantize_per_tensor(small, 0.05, 3, -128, 127, torch.int8) + x


class Branches(nn.Module):
    """Control flow, with graphs inside the graph."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x - 1, (x,))


class Network(nn.Module):
    """Layers that the backend of the process takes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "layouts": Layouts,
    "quantized": Quantized,
    "branches": Branches,
    "network": Network,
}
MODULES = {
    "etx": ("etx_exir", "etx_runtime"),
    "executorch": ("executorch.exir", "executorch.runtime", "executorch.kernels.quantized"),
}
PARTITIONER = {
    "etx": "etx_exir.partitioners:AllNodePartitioner",
    "executorch": (
        "executorch.exir.backend.canonical_partitioners.all_node_partitioner:AllNodePartitioner"
    ),
}


def model(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Return a model with its weights, and what it is called with."""
    torch.manual_seed(5)
    return MODELS[name]().eval(), (torch.randn(2, 3, 8, 8),)


def lower(side: str, name: str) -> tuple[Any, bytes]:
    """Return the Edge graph and the file."""
    exir = importlib.import_module(MODULES[side][0])
    module, inputs = model(name)
    edge = exir.to_edge(torch.export.export(module, inputs))
    return edge.exported_program(), bytes(edge.to_executorch().buffer)


def delegate(side: str) -> Any:
    """Return a program whose whole graph a backend of this side took."""
    exir = importlib.import_module(MODULES[side][0])
    details = importlib.import_module(
        "etx_exir" if side == "etx" else "executorch.exir.backend.backend_details"
    )
    preprocess = staticmethod(lambda program, specs: details.PreprocessResult(b"all of it"))
    backend = type(f"Whole{side}", (details.BackendDetails,), {"preprocess": preprocess})
    place, _, attribute = PARTITIONER[side].partition(":")
    partitioner = getattr(importlib.import_module(place), attribute)
    module, inputs = model("network")
    edge = exir.to_edge(torch.export.export(module, inputs))
    return edge.to_backend(partitioner(backend.__name__, [])).exported_program()


def execute(side: str, file: Path, inputs: tuple[Tensor, ...]) -> Any:
    """Run a file on a runtime."""
    runtime = importlib.import_module(MODULES[side][1]).Runtime.get()
    program = runtime.load_program(str(file))
    return program.load_method("forward").execute(list(inputs))[0]


def compare(what: str, found: Any, expected: Tensor) -> None:
    """Fail unless a result is the model's."""
    np.testing.assert_allclose(
        np.asarray(found), expected.numpy(), rtol=TOLERANCE, atol=TOLERANCE, err_msg=what
    )


def main(folder: Path, sides: list[str]) -> None:
    """Import the sides in this order, then run all that is said above."""
    for side in sides:
        for name in MODULES[side]:
            importlib.import_module(name)
    digests: dict[str, str] = {}
    with torch.no_grad():
        for name in MODELS:
            module, inputs = model(name)
            expected = module(*inputs)
            for side in sides:
                program, data = lower(side, name)
                compare(f"{name}: graph of {side}", program.module()(*inputs), expected)
                file = folder / f"{side}-{name}.pte"
                file.write_bytes(data)
                digests[file.stem] = hashlib.sha256(data).hexdigest()
                for runtime in sides:
                    compare(f"{file} on {runtime}", execute(runtime, file, inputs), expected)
        for side in sides:
            module, inputs = model("network")
            found = delegate(side).module()(*inputs)
            compare(f"delegated by {side}", found, module(*inputs))
    print(json.dumps(digests))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
