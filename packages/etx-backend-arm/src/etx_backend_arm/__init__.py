# SPDX-License-Identifier: BSD-3-Clause
"""Arm targets for ETX: programs as TOSA 1.0 graphs.

The lowering (``etx_backend_arm.lowering``) needs the extra ``[aot]``; reading and writing TOSA
files (``etx_backend_arm.tosa``) does not.
"""

from etx_backend_arm._version import __version__

__all__ = ["__version__"]
