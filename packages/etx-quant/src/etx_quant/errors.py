# SPDX-License-Identifier: BSD-3-Clause
"""What this package raises."""

from __future__ import annotations


class QuantizationError(ValueError):
    """A model or a calibration set that cannot be quantized; the message says what to do."""


class FloatEdgeError(QuantizationError):
    """An input or output that stays float; ``side`` says of which it is: inputs or outputs."""

    def __init__(self, problem: str, side: str) -> None:
        super().__init__(f"{problem}: it stays float; leave it out of {side}")
        self.side = side


class QuantizationWarning(UserWarning):
    """Warn of a result that holds nothing quantized; it is returned all the same."""
