# SPDX-License-Identifier: BSD-3-Clause
"""ExecuTorch's module tree over ETX: a script is ported by replacing `executorch` by this name.

The modules are rows of `names.NAMES`; what ETX does not have is a row of `absent.ABSENT`.
"""

from __future__ import annotations

from etx_executorch import finder
from etx_executorch._version import __version__

__all__ = ["__version__"]

finder.install()


def __getattr__(name: str) -> object:
    return finder.find(__name__, name)
