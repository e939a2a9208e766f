# SPDX-License-Identifier: BSD-3-Clause
"""Quantizers whose programs become TOSA of the INT profile: need the extra ``[aot]``."""

from __future__ import annotations

from etx_quant import Int8Quantizer, QuantizationError

from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.nodes import Profile

__all__ = ["TOSAQuantizer"]


class TOSAQuantizer(Int8Quantizer):
    """Annotates for int8 per channel unless ``set_global`` and its like say otherwise.

    Raises QuantizationError for a compile spec without the profile INT.
    """

    def __init__(self, compile_spec: TosaCompileSpec | None = None) -> None:
        super().__init__()
        self.compile_spec = compile_spec or TosaCompileSpec("TOSA-1.0+INT")
        if Profile.INT not in self.compile_spec.profiles:
            raise QuantizationError(
                f"{self.compile_spec.tosa_spec} has floats only; quantize for TOSA-1.0+INT"
            )
