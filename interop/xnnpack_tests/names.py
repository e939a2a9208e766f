# SPDX-License-Identifier: BSD-3-Clause
"""What names of ExecuTorch's XNNPACK tests stand for in ETX, where the port has them otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from etx_backend_xnnpack import partition
from etx_executorch.adapters.serialize import PTEFile, deserialize_pte_binary
from etx_executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig
from torch.fx import GraphModule

XNNPACK = "backends.xnnpack"


OURS = ("per_op_mode", "config_precisions", "configs")


def _every_run(make: Callable[..., Any]) -> Callable[..., Any]:
    """Delegate what can be: most of the tests lower one light operator.

    Options of theirs that choose between forms of one computation have no meaning here.
    """

    def partitioner(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **{key: kwargs[key] for key in OURS if key in kwargs})
        made.heavy_only = False
        return made

    return partitioner


def _compile_config(skip_dim_order: bool = False) -> EdgeCompileConfig:
    return EdgeCompileConfig(_check_ir_validity=False, _skip_dim_order=skip_dim_order)


def _memory_format(order: Sequence[int]) -> torch.memory_format:
    """Return the format whose dimensions lie in this order, the outermost first."""
    formats = {(0, 2, 3, 1): torch.channels_last, (0, 2, 3, 4, 1): torch.channels_last_3d}
    return formats.get(tuple(order), torch.contiguous_format)


def _unchanged(module: GraphModule) -> None:
    """Leave a graph as it is: chains that several operators share are lowered as they are."""


def _without_own_data(data: bytes) -> PTEFile:
    """Read a file without the named data that ETX writes into each: debug data, constraints."""
    file = deserialize_pte_binary(data)
    found = file.named_data.pte_data if file.named_data else {}
    if all(key.startswith("etx/") for key in found):
        file.named_data = None
    return file


def names() -> Mapping[str, Any]:
    """Return values by name."""
    partitioners = {
        f"{XNNPACK}.partition.xnnpack_partitioner.{name}": _every_run(getattr(partition, name))
        for name in (
            "XnnpackPartitioner",
            "XnnpackFloatingPointPartitioner",
            "XnnpackDynamicallyQuantizedPartitioner",
        )
    }
    configs = f"{XNNPACK}.utils.configs"
    transforms = "backends.transforms.duplicate_dynamic_quant_chain"
    return {
        **partitioners,
        f"{XNNPACK}.partition.config.xnnpack_config.ConfigPrecisionType": (
            partition.ConfigPrecisionType
        ),
        f"{configs}.get_xnnpack_edge_compile_config": _compile_config,
        f"{configs}.get_xnnpack_executorch_backend_config": partial(
            ExecutorchBackendConfig, extract_delegate_segments=True
        ),
        "exir._serialize._deserialize_pte_binary": _without_own_data,
        "exir.dim_order_utils.get_memory_format": _memory_format,
        "exir.backend.backend_api.validation_disabled": nullcontext,
        f"{transforms}.DuplicateDynamicQuantChainPass": lambda: _unchanged,
    }
