# SPDX-License-Identifier: BSD-3-Clause
"""The options of lowering and of emission, under ExecuTorch's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from etx_schema import Target
from torch._ops import OpOverload
from torch.fx import Node

from etx_exir.errors import ConfigError

__all__ = ["EdgeCompileConfig", "ExecutorchBackendConfig", "config_from"]


@dataclass
class EdgeCompileConfig:
    """How `to_edge` lowers.

    `preserve_ops` are kept whole, `_core_aten_ops_exception_list` may appear although they are
    not Core ATen; None is an empty list. `_check_ir_validity` verifies the dialects; `_skip_dim_order` is refused,
    since the file stores dim orders.
    """

    _check_ir_validity: bool = True
    _skip_dim_order: bool = False
    _core_aten_ops_exception_list: list[OpOverload] = field(default_factory=list)
    preserve_ops: list[OpOverload] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._core_aten_ops_exception_list = list(self._core_aten_ops_exception_list or ())
        self.preserve_ops = list(self.preserve_ops or ())
        if self._skip_dim_order:
            raise ConfigError(
                "EdgeCompileConfig(_skip_dim_order=True) is not supported: the file stores the "
                "dim order of every tensor; leave the option out"
            )


@dataclass
class ExecutorchBackendConfig:
    """How `to_executorch` plans memory and writes the file.

    `memory_planning_pass` is one planner for all methods or a dict from method to planner.
    `external_constants` is True (all weights go to a `.ptd` file) or a function from a node to
    the tag of its file, None meaning inside. `target` names what the program is checked against.
    """

    passes: list[Any] = field(default_factory=list)
    memory_planning_pass: Any = None
    emit_stacktrace: bool = False
    extract_delegate_segments: bool = True
    segment_alignment: int = 128
    constant_tensor_alignment: int | None = None
    delegate_alignment: int | None = None
    remove_view_copy: bool = True
    external_constants: bool | Callable[[Node], str | None] = False
    external_mutable_weights: bool = False
    emit_mutable_buffer_names: bool = True
    emit_debug: bool = True
    do_quant_fusion_and_const_prop: bool = False
    target: str | Target | None = "portable"

    def __post_init__(self) -> None:
        if self.do_quant_fusion_and_const_prop:
            raise ConfigError(
                "ExecutorchBackendConfig(do_quant_fusion_and_const_prop=True) is not supported: "
                "constants are always folded; leave the option out"
            )
        for name in ("segment_alignment", "constant_tensor_alignment", "delegate_alignment"):
            value = getattr(self, name)
            if value is not None and (value < 1 or value & (value - 1)):
                raise ConfigError(f"{name}={value}: expected a power of two")


def config_from(kind: type, options: Mapping[str, Any], known: Sequence[str] = ()) -> Any:
    """Build a config of `kind` from options by name; unknown ones are all named in one error."""
    names = {item.name for item in fields(kind)} | set(known)
    if unknown := sorted(set(options) - names):
        raise ConfigError(f"unknown option {', '.join(unknown)}; known: {', '.join(sorted(names))}")
    return kind(**options)
