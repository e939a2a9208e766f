# SPDX-License-Identifier: BSD-3-Clause
"""ExecuTorch's flow to operators of ``cortex_m::``, with the passes of etx-backend-arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from etx_backend_arm.cortex_m import CORTEX_M, CortexM, CortexMTargetConfig
from torch.export import ExportedProgram

from etx_executorch.adapters.config import EdgeCompileConfig
from etx_executorch.adapters.transforms import transform

__all__ = ["CortexMPassManager", "cortex_m_edge_compile_config"]


class CortexMPassManager:
    """Makes operators of ``cortex_m::`` of a quantized program.

    They are the same for all processors: `target_config` is kept, and changes nothing.
    """

    pass_list: ClassVar[list[Any]] = list(CORTEX_M)

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

    def transform_for_annotation(self, model: Any) -> Any:
        """Return the model, which needs no other form."""
        return model

    def transform(self) -> ExportedProgram:
        """Return the program after the passes. Errors: ValueError without a program."""
        if self.exported_program is None:
            raise ValueError("transform() needs an exported program: none was given")
        return transform(self.exported_program, *self.passes)


def cortex_m_edge_compile_config() -> EdgeCompileConfig:
    """Return the configuration of `to_edge` that the passes need: that of ETX."""
    return EdgeCompileConfig()
