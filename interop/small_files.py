# SPDX-License-Identifier: BSD-3-Clause
"""Write small files with ExecuTorch, one of each kind, for tests of what broken files do.

usage: small_files.py FOLDER

They lie in packages/etx-runtime/tests/executorch; ExecuTorch's environment renews them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import (
    EdgeProgramManager,
    ExecutorchBackendConfig,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from torch.export import Dim, export


class Add(torch.nn.Module):
    """Two instructions."""

    example = (torch.ones(2, 3), torch.ones(2, 3))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x + y) * 2


class State(torch.nn.Module):
    """A linear layer, and a buffer that starts at 1 and grows."""

    example = (torch.ones(1, 4),)

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("total", torch.ones(1, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(self.linear(x))
        return self.total * 1.0


class CatTopk(torch.nn.Module):
    """Lists of tensors, two outputs."""

    example = (torch.arange(6.0).reshape(2, 3), torch.ones(2, 2))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, indices = torch.topk(torch.cat([x, y], 1), 2)
        return values, indices


class Branch(torch.nn.Module):
    """A condition, moves, jumps."""

    example = (torch.tensor(True), torch.ones(2, 2))

    def forward(self, yes: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(yes, lambda x: x * 2, lambda x: torch.relu(x) + 1, (x,))


class Dynamic(torch.nn.Module):
    """Sizes known when it runs, and numbers that are computed of them."""

    example = (torch.arange(24.0).reshape(4, 6),)
    dynamic_shapes = ({0: Dim("n", min=1, max=8)},)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.reshape(x.shape[0] * 2, 3), -1)[1:]


class Linear(torch.nn.Module):
    """Weights that go to a delegate, or to a file of their own."""

    example = (torch.ones(1, 4),)

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


MODULES = {"add": Add, "state": State, "cat_topk": CatTopk, "branch": Branch, "dynamic": Dynamic}


def exported(module: torch.nn.Module) -> torch.export.ExportedProgram:
    shapes = getattr(module, "dynamic_shapes", None)
    return export(module.eval().requires_grad_(False), module.example, dynamic_shapes=shapes)


def save(edge: EdgeProgramManager, folder: Path, name: str, external: bool = False) -> None:
    passes = [InitializedMutableBufferPass([""])]
    config = ExecutorchBackendConfig(passes=passes, external_constants=external)
    program = edge.to_executorch(config)
    (folder / f"{name}.pte").write_bytes(program.buffer)
    if external:
        program.write_tensor_data_to_file(str(folder))
        next(folder.glob("*.ptd")).rename(folder / f"{name}.ptd")


def main(folder: Path) -> None:
    """Write all files; the weights are the same each time."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for name, make in MODULES.items():
        save(to_edge(exported(make())), folder, name)
    save(to_edge(exported(Linear())), folder, "external", external=True)
    delegated = to_edge_transform_and_lower(exported(Linear()), partitioner=[XnnpackPartitioner()])
    save(delegated, folder, "delegate")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
