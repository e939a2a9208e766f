# SPDX-License-Identifier: BSD-3-Clause
"""The options of lowering as ExecuTorch's users give them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import etx_exir
from torch._ops import OpOverload
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

from etx_executorch.adapters.operators import torch_op

__all__ = [
    "Always",
    "ConstraintBasedSymShapeEvalPass",
    "DynamicMemoryPlanningMode",
    "EdgeCompileConfig",
    "ExecutorchBackendConfig",
    "HintBasedSymShapeEvalPass",
    "InitializedMutableBufferPass",
]


class DynamicMemoryPlanningMode(Enum):
    """How memory of tensors of dynamic size is planned; ETX has only the first."""

    UPPER_BOUND = 0
    SYMBOLIC = 1


class Always:
    """A pass whose effect ETX always has: given to an option or in a list, it changes nothing."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __call__(self, graph_module: GraphModule) -> PassResult:
        """Leave the module."""
        return PassResult(graph_module, False)


class ConstraintBasedSymShapeEvalPass(Always):
    """Sizes are planned at the bounds of the exported program's constraints."""


class HintBasedSymShapeEvalPass:
    """Leaves specs at their upper bounds: planned for an example's sizes, others would not fit.

    As `sym_shape_eval_pass` it is refused.
    """

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __call__(self, graph_module: GraphModule) -> PassResult:
        """Leave the module."""
        return PassResult(graph_module, False)


class InitializedMutableBufferPass(Always):
    """The initial values of all mutable buffers are kept, whatever their names."""


class EdgeCompileConfig(etx_exir.EdgeCompileConfig):
    """How `to_edge` lowers.

    `_skip_dim_order` and `_use_edge_ops` change nothing: the file stores every tensor's dim order,
    and operators of the Edge dialect are equal to torch's.
    """

    def __init__(
        self,
        _check_ir_validity: bool = True,
        _skip_dim_order: bool = False,
        _core_aten_ops_exception_list: list[OpOverload] | None = None,
        preserve_ops: list[OpOverload] | None = None,
        *,
        _use_edge_ops: bool = True,
    ) -> None:
        allowed = [torch_op(op) for op in _core_aten_ops_exception_list or ()]
        kept = [torch_op(op) for op in preserve_ops or ()]
        super().__init__(_check_ir_validity, False, allowed, kept)


class ExecutorchBackendConfig(etx_exir.ExecutorchBackendConfig):
    """How `to_executorch` plans memory and writes the file.

    `do_quant_fusion_and_const_prop` changes nothing: constants are always folded. So do passes
    whose effect ETX always has, given as `sym_shape_eval_pass` and `to_out_var_pass`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        options.pop("do_quant_fusion_and_const_prop", None)
        for name in ("sym_shape_eval_pass", "to_out_var_pass"):
            value = options.get(name)
            each = value.values() if isinstance(value, Mapping) else [value]
            if all(isinstance(item, Always) for item in each):
                options.pop(name, None)
        super().__init__(*args, **options)
