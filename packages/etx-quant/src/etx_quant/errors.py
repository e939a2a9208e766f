# SPDX-License-Identifier: BSD-3-Clause
"""What this package raises."""

from __future__ import annotations


class QuantizationError(ValueError):
    """A model or a calibration set that cannot be quantized; the message says what to do."""


class QuantizationWarning(UserWarning):
    """Warn of a result that holds nothing quantized; it is returned all the same."""
