# SPDX-License-Identifier: BSD-3-Clause
"""Emission: exported programs as a `.pte` in memory."""

from etx_exir.emit.program import Emitted, emit, emit_all
from etx_exir.errors import EmitError

__all__ = ["EmitError", "Emitted", "emit", "emit_all"]
