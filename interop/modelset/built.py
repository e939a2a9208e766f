# SPDX-License-Identifier: BSD-3-Clause
"""What building a row of the model set gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn


@dataclass
class Built:
    """A module in eval mode with the arguments it is exported with and called with.

    ``calls`` are made one after the other on one loaded method, state included.
    """

    module: nn.Module
    example: tuple[Any, ...]
    calls: list[tuple[Any, ...]]
    dynamic_shapes: Any = None
