# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the emitter."""

from __future__ import annotations

from etx_schema import EtxError


class EmitError(EtxError):
    """The program cannot be written to a file."""
