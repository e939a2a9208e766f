# SPDX-License-Identifier: BSD-3-Clause
"""ExecuTorch's flow to operators of ``cortex_m::``, with the passes of etx-backend-arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from etx_backend_arm.cortex_m import CORTEX_M, CortexM, CortexMTargetConfig, passes_for
from etx_backend_arm.cortex_m import CortexMQuantizer as Quantizer
from etx_quant import QuantizationConfig, get_symmetric_quantization_config
from etx_quant.annotate import KEY
from etx_quant.rows import Weighted
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import DerivedQuantizationSpec

from etx_executorch.adapters.config import EdgeCompileConfig
from etx_executorch.adapters.transforms import transform

__all__ = ["CortexMPassManager", "CortexMQuantizer", "cortex_m_edge_compile_config"]


class CortexMPassManager:
    """Makes operators of ``cortex_m::`` of a quantized program, as kernels of `target_config` read.

    With `use_explicit_layout` images have the sizes (N, H, W, C), in operators whose names end in
    `_nhwc`; otherwise (N, C, H, W), and channels are last in memory.
    """

    pass_list: ClassVar[list[Any]] = list(CORTEX_M)
    explicit_layout_pass_list: ClassVar[list[Any]] = list(CORTEX_M)

    def __init__(
        self,
        exported_program: ExportedProgram | None,
        passes: Sequence[Any] | None = None,
        target_config: CortexMTargetConfig | None = None,
        use_explicit_layout: bool = False,
    ) -> None:
        self.exported_program = exported_program
        self.passes = list(self.pass_list if passes is None else passes)
        self.target_config = target_config or CortexMTargetConfig(CortexM.M55)
        self.use_explicit_layout = use_explicit_layout

    def transform_for_annotation(self, model: Any) -> Any:
        """Return the model, which needs no other form."""
        return model

    def transform(self) -> ExportedProgram:
        """Return the program after the passes. Errors: ValueError without a program."""
        if self.exported_program is None:
            raise ValueError("transform() needs an exported program: none was given")
        passes = passes_for(self.target_config, self.passes, self.use_explicit_layout)
        return transform(self.exported_program, *passes)


class CortexMQuantizer(Quantizer):
    """Annotates as ExecuTorch's does; that of etx-backend-arm has a scale for each row of a matrix.

    `per_channel_config` is for convolutions, `per_tensor_config` for all else. Biases are int32, of
    the product of the scales of input and weight. Layouts change nothing here.
    """

    def __init__(
        self,
        per_tensor_config: QuantizationConfig | None = None,
        per_channel_config: QuantizationConfig | None = None,
        use_explicit_layout: bool = False,
    ) -> None:
        super().__init__()
        self.set_global(per_tensor_config or get_symmetric_quantization_config())
        channels = per_channel_config or get_symmetric_quantization_config(is_per_channel=True)
        for target, row in self.rows.items():
            if isinstance(row, Weighted) and not row.is_matrix:
                self.set_operator_type(target, channels)

    def annotate(self, model: GraphModule) -> GraphModule:
        """Attach annotations to the nodes of the graph, biases included."""
        super().annotate(model)
        for node in model.graph.nodes:
            if isinstance(self.rows.get(node.target), Weighted) and KEY in node.meta:
                _annotate_bias(node)
        return model


def _annotate_bias(node: Node) -> None:
    found = node.meta[KEY].input_qspec_map
    operands: Any = [*node.args[:3], *[None] * 3][:3]
    source, weight, bias = operands
    spec = found.get(weight)
    if not isinstance(bias, Node) or bias in found or source not in found or spec is None:
        return
    is_whole = spec.qscheme is torch.per_tensor_symmetric
    found[bias] = DerivedQuantizationSpec(
        derived_from=[(source, node), (weight, node)],
        derive_qparams_fn=_products,
        dtype=torch.int32,
        quant_min=-(2**31),
        quant_max=2**31 - 1,
        qscheme=spec.qscheme,
        ch_axis=None if is_whole else 0,
    )


def _products(observers: list[Any]) -> tuple[Tensor, Tensor]:
    """Return the scales and zero points of a bias."""
    (source, _), (weight, _) = (observer.calculate_qparams() for observer in observers)
    scale = source * weight
    return scale, torch.zeros_like(scale, dtype=torch.int32)


def cortex_m_edge_compile_config() -> EdgeCompileConfig:
    """Return the configuration of `to_edge` that the passes need: that of ETX."""
    return EdgeCompileConfig()
