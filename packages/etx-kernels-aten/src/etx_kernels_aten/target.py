# SPDX-License-Identifier: BSD-3-Clause
"""Target ``aten``: what can be compiled for these kernels."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from etx_kernels_aten._version import __version__

_FOLDER = os.path.dirname(os.path.realpath(__file__))
_written: dict[int, tuple[tempfile.TemporaryDirectory[str], str]] = {}


def target_path() -> str:
    """Return the path of the target that lists the operators.

    Where torch is in the process they are those of its registry, with torchvision's and a user's;
    else those of torch itself.
    """
    if "torch" not in sys.modules:
        return os.path.join(_FOLDER, "aten.json")
    from etx_kernels_aten import operators

    key = hash(frozenset(operators.operators()))
    if key not in _written:
        folder = tempfile.TemporaryDirectory(prefix="etx-aten-")
        path = Path(folder.name) / "aten.json"
        operators.write(path, __version__)
        _written[key] = (folder, str(path))
    return _written[key][1]
