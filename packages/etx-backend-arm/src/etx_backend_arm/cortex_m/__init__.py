# SPDX-License-Identifier: BSD-3-Clause
"""Quantized networks as ``cortex_m::`` operators: needs the extra ``[aot]``."""

from etx_backend_arm.cortex_m.lower import CORTEX_M, lower_to_cortex_m, passes_for
from etx_backend_arm.cortex_m.quantizer import CortexMQuantizer
from etx_backend_arm.cortex_m.target_config import CortexM, CortexMTargetConfig

__all__ = [
    "CORTEX_M",
    "CortexM",
    "CortexMQuantizer",
    "CortexMTargetConfig",
    "lower_to_cortex_m",
    "passes_for",
]
