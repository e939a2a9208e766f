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
from etx_exir.ir.targets import DEFAULT, PRECISIONS

__all__ = ["EdgeCompileConfig", "ExecutorchBackendConfig", "config_from"]

INLINE_ALIGNMENT = 16
REFUSED = {
    "propagate_device_config": "all memory is the host's; leave the option out",
    "to_out_var_pass": "out variants are chosen at emission; register one with torch.library",
    "sym_shape_eval_pass": "sizes are planned at their upper bounds; leave the option out",
    "reinplace_extra_ops": "a kernel must be known to be safe in place; leave the option out",
    "do_quant_fusion_and_const_prop": "constants are always folded, and quantized operators are "
    "fused by the backend that takes them; leave the option out",
}


@dataclass
class EdgeCompileConfig:
    """How `to_edge` lowers.

    `preserve_ops` are kept whole, `_core_aten_ops_exception_list` may appear although they are
    not Core ATen; None is an empty list. `_check_ir_validity` verifies the dialects;
    `_skip_dim_order` is refused, since the file stores dim orders.
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

    `passes` run on the Edge programs before emission. `memory_planning_pass` is one planner for
    all methods or a dict from method to planner. `external_constants` is True (all weights go to
    a `.ptd` file) or a function from a node to the tag of its file, None meaning inside.
    `extract_delegate_segments=False` stores delegates in the program's tables. `target` is what
    the program is made for and checked against: a name, a `.json` file, or None for no check.
    `precision="bf16"` stores weights of layers in bfloat16, which a processor may multiply faster.

    `run_reinplace_pass` and `enable_non_cpu_memory_planning` change nothing: results lie in place
    wherever that is safe, and all memory is planned. What replaces a step of ExecuTorch's own is
    refused.
    """

    passes: list[Any] = field(default_factory=list)
    memory_planning_pass: Any = None
    propagate_device_config: Any = None
    to_out_var_pass: Any = None
    dynamic_memory_planning_mode: Any = "UPPER_BOUND"
    emit_stacktrace: bool = False
    extract_delegate_segments: bool = True
    segment_alignment: int = 128
    constant_tensor_alignment: int | None = None
    delegate_alignment: int | None = None
    sym_shape_eval_pass: Any = None
    remove_view_copy: bool = True
    external_constants: bool | Callable[[Node], str | None] = False
    external_mutable_weights: bool = False
    emit_mutable_buffer_names: bool = True
    do_quant_fusion_and_const_prop: bool = False
    run_reinplace_pass: bool = False
    enable_non_cpu_memory_planning: bool = True
    reinplace_extra_ops: Any = None
    emit_debug: bool = True
    target: str | Target | None = DEFAULT
    precision: str = PRECISIONS[0]

    def __post_init__(self) -> None:
        for name, reason in REFUSED.items():
            if getattr(self, name):
                raise ConfigError(f"ExecutorchBackendConfig({name}=...) is not supported: {reason}")
        mode = self.dynamic_memory_planning_mode
        if getattr(mode, "name", mode) != "UPPER_BOUND":
            raise ConfigError(
                f"dynamic_memory_planning_mode={mode!r}: expected UPPER_BOUND; memory is planned"
                " for the largest sizes"
            )
        if self.precision not in PRECISIONS:
            raise ConfigError(
                f"precision={self.precision!r}: expected one of {', '.join(PRECISIONS)}"
            )
        if self.target is None and self.precision != PRECISIONS[0]:
            raise ConfigError(f"precision={self.precision!r} needs a target, whose kernels read it")
        for name in ("segment_alignment", "constant_tensor_alignment", "delegate_alignment"):
            value = getattr(self, name)
            if value is not None and (value < 1 or value & (value - 1)):
                raise ConfigError(f"{name}={value}: expected a power of two")
        where, least = "segments", self.segment_alignment
        if not self.extract_delegate_segments:
            where, least = "the program's tables", INLINE_ALIGNMENT
        if (self.delegate_alignment or 1) > least:
            raise ConfigError(
                f"delegate_alignment={self.delegate_alignment}: delegates lie in {where}, aligned"
                f" to {least}; raise segment_alignment, with extract_delegate_segments=True"
            )


def config_from(kind: type, options: Mapping[str, Any], known: Sequence[str] = ()) -> Any:
    """Build a config of `kind` from options by name; unknown ones are all named in one error."""
    names = {item.name for item in fields(kind)} | set(known)
    if unknown := sorted(set(options) - names):
        raise ConfigError(f"unknown option {', '.join(unknown)}; known: {', '.join(sorted(names))}")
    return kind(**options)
