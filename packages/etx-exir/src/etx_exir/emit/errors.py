# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the emitter."""

from __future__ import annotations

from etx_schema import EtxError


class EmitError(EtxError):
    """The program cannot be written to a file."""


class UnboundedError(EmitError):
    """A size has no upper bound; `what` says which, `advice` what to do."""

    def __init__(self, where: str, what: str, advice: str) -> None:
        self.what, self.advice = what, advice
        super().__init__(f"{where}: {what}. {advice}")
