# SPDX-License-Identifier: BSD-3-Clause
"""The recipes of XNNPACK: float, int8 by ranges of calibration or of the data, int4 weights."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_quant import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
    get_weight_quantization_config,
)

from etx_executorch.adapters.config import EdgeCompileConfig, ExecutorchBackendConfig
from etx_executorch.adapters.recipes import (
    BackendRecipeProvider,
    ExportRecipe,
    LoweringRecipe,
    QuantizationRecipe,
    RecipeType,
    recipe_registry,
)

__all__ = ["XNNPACKRecipeProvider", "XNNPackRecipeType"]

GROUP_SIZE = 32


class XNNPackRecipeType(RecipeType):
    """The names of XNNPACK's recipes. Of int4 weights, PER_TENSOR are those in groups."""

    FP32 = "xnnpack_fp32"
    PT2E_INT8_DYNAMIC_PER_CHANNEL = "xnnpack_pt2e_int8_dynamic_per_channel"
    PT2E_INT8_STATIC_PER_CHANNEL = "xnnpack_pt2e_int8_static_per_channel"
    PT2E_INT8_STATIC_PER_TENSOR = "xnnpack_pt2e_int8_static_per_tensor"
    TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_CHANNEL = "xnnpack_torchao_int8da_int4w_per_channel"
    TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR = "xnnpack_torchao_int8da_int4w_per_tensor"

    @classmethod
    def get_backend_name(cls) -> str:
        """Return xnnpack."""
        return "xnnpack"


PT2E = {
    XNNPackRecipeType.PT2E_INT8_DYNAMIC_PER_CHANNEL: (True, True),
    XNNPackRecipeType.PT2E_INT8_STATIC_PER_CHANNEL: (True, False),
    XNNPackRecipeType.PT2E_INT8_STATIC_PER_TENSOR: (False, False),
}
"""Whether each channel of a weight has a scale, and whether ranges are those of the data."""

IN_GROUPS = XNNPackRecipeType.TORCHAO_INT8_DYNAMIC_ACT_INT4_WEIGHT_PER_TENSOR


class XNNPACKRecipeProvider(BackendRecipeProvider):
    """Makes XNNPACK's recipes; that of int4 in groups takes ``group_size``, 32 unless given.

    Those named after torchao have the numbers of its configurations, by a quantizer. They delegate
    whatever XNNPACK has, also what ETX's own kernels would compute sooner.
    """

    @property
    def backend_name(self) -> str:
        """The name of the backend."""
        return "xnnpack"

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        """Return the names of the recipes."""
        return list(XNNPackRecipeType)

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        """Return a recipe. Errors: ValueError for a group size that is no number."""
        if not isinstance(recipe_type, XNNPackRecipeType):
            return None
        size = kwargs.pop("group_size", GROUP_SIZE) if recipe_type is IN_GROUPS else GROUP_SIZE
        if not isinstance(size, int) or isinstance(size, bool):
            kind = type(size).__name__
            raise ValueError(f"Parameter 'group_size' must be an integer, got {kind}: {size}")
        if kwargs:
            logging.warning("recipe %s: %s changes nothing", recipe_type.name, ", ".join(kwargs))
        config, quantization = None, None
        if recipe_type in PT2E:
            is_per_channel, is_dynamic = PT2E[recipe_type]
            config = get_symmetric_quantization_config(is_per_channel, is_dynamic=is_dynamic)
        elif recipe_type is not XNNPackRecipeType.FP32:
            grain = size if recipe_type is IN_GROUPS else None
            config = get_weight_quantization_config(4, grain, is_dynamic=True)
        if config is not None:
            quantization = QuantizationRecipe([XNNPACKQuantizer().set_global(config)])
        partitioner = XnnpackPartitioner(heavy_only=False)
        return ExportRecipe(
            name=recipe_type.value,
            quantization_recipe=quantization,
            lowering_recipe=LoweringRecipe(
                [partitioner], edge_compile_config=EdgeCompileConfig(_check_ir_validity=False)
            ),
            executorch_backend_config=ExecutorchBackendConfig(extract_delegate_segments=True),
        )


recipe_registry.register_backend_recipe_provider(XNNPACKRecipeProvider())
