# SPDX-License-Identifier: BSD-3-Clause
"""Write eager's calls of each model: ``<folder>/<model>/calls.npz`` and ``calls.json``.

usage: reference.py FOLDER MODEL...; with --list the programs with control flow are printed.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from modelset import build
from modelset.control_flow import FLOWS
from torch import nn
from torch.utils import _pytree as pytree


def leaves(tree: object) -> list[np.ndarray]:
    """Flatten a tree of tensors and numbers into arrays of their own memory."""
    return [torch.as_tensor(leaf).detach().numpy().copy() for leaf in pytree.tree_leaves(tree)]


def record(module: nn.Module, calls: Sequence[tuple[Any, ...]], folder: Path) -> None:
    """Make the calls on a copy of `module`, state carried over, and store both sides."""
    module = copy.deepcopy(module)
    arrays, sizes = {}, []
    with torch.no_grad():
        for call, args in enumerate(calls):
            inputs = leaves(args)
            outputs = leaves(module(*args))
            arrays.update({f"call{call}_input{i}": x for i, x in enumerate(inputs)})
            arrays.update({f"call{call}_output{i}": x for i, x in enumerate(outputs)})
            sizes.append([len(inputs), len(outputs)])
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "calls.npz", **arrays)
    (folder / "calls.json").write_text(json.dumps(sizes))


def main(root: Path, names: list[str]) -> None:
    for name in names:
        print(f"{name}: eager", flush=True)
        built = build(name)
        record(built.module, built.calls, root / name)


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print(json.dumps(list(FLOWS)))
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
