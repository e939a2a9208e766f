# SPDX-License-Identifier: BSD-3-Clause
"""What importing a side adds to or changes in registries that both share: `registered.py SIDE`."""

from __future__ import annotations

import importlib
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch._export.verifier
import torch.ao.quantization.fx._decomposed
import torch.export
import torch.fx.experimental.proxy_tensor
from one_process import MODULES
from torch._ops import _higher_order_ops
from torch.utils import _pytree as pytree

IMPORTED = {
    "etx": (
        *MODULES["etx"],
        "etx_exir.emit",
        "etx_exir.partitioners",
        "etx_exir.commands",
        "etx_kernels_portable",
    ),
    "executorch": (
        *MODULES["executorch"],
        "executorch.exir.backend.backend_api",
        "executorch.exir.emit",
        "executorch.exir.passes",
        "executorch.extension.pybindings.portable_lib",
        "executorch.backends.xnnpack.partition.xnnpack_partitioner",
    ),
}
PATCHABLE = (
    "torch",
    "torch._export.verifier",
    "torch._ops",
    "torch._subclasses.fake_tensor",
    "torch._tensor",
    "torch.export.exported_program",
    "torch.export.graph_signature",
    "torch.fx.graph",
    "torch.fx.graph_module",
    "torch.fx.node",
    "torch.library",
)


def attributes() -> Iterator[tuple[str, Any]]:
    """Yield the functions and classes of those modules, and the methods of those classes."""
    for name in PATCHABLE:
        for key, value in list(vars(sys.modules[name]).items()):
            if callable(value):
                yield f"{name}.{key}", value
            if isinstance(value, type) and value.__module__ == name:
                for member, inner in list(vars(value).items()):
                    if callable(inner):
                        yield f"{name}.{key}.{member}", inner


def registries() -> dict[str, dict[str, Any]]:
    """Return what is registered, by registry and name."""
    return {
        "operators": dict.fromkeys(torch._C._dispatch_get_all_op_names(), 0),
        "higher order operators": {name: id(op) for name, op in _higher_order_ops.items()},
        "decompositions": {
            str(op): id(function) for op, function in torch._decomp.decomposition_table.items()
        },
        "pytree nodes": {str(kind): id(node) for kind, node in pytree.SUPPORTED_NODES.items()},
        "functions of torch": {name: id(value) for name, value in attributes()},
        "handlers of the log": {str(h): id(h) for h in logging.getLogger().handlers},
    }


def main(side: str) -> None:
    """Print what is new and what was replaced, by registry."""
    before = registries()
    for name in IMPORTED[side]:
        importlib.import_module(name)
    found = {}
    for name, after in registries().items():
        found[name] = {
            "added": sorted(set(after) - set(before[name])),
            "replaced": sorted(k for k, v in before[name].items() if after.get(k) != v),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
