# SPDX-License-Identifier: BSD-3-Clause
"""What this package raises."""

from __future__ import annotations

from etx_runtime import PluginError

__all__ = ["TorchVersionError"]


class TorchVersionError(PluginError):
    """The installed torch is not the one that the plugin was built for."""
