# SPDX-License-Identifier: BSD-3-Clause
"""ExecuTorch's Inspector: an ETDump as event blocks and tables."""

from etx_devtools.inspector.blocks import Event, EventBlock, PerfData, TimeScale
from etx_devtools.inspector.inspector import Inspector

__all__ = ["Event", "EventBlock", "Inspector", "PerfData", "TimeScale"]
