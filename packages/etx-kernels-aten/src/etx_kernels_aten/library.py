# SPDX-License-Identifier: BSD-3-Clause
"""Where the plugin is, once torch is in the process for it to use."""

from __future__ import annotations

import os

import torch

from etx_kernels_aten._torch import BUILT_FOR
from etx_kernels_aten.errors import TorchVersionError

_FOLDER = os.path.dirname(os.path.realpath(__file__))


def library_path() -> str:
    """Return the path of the plugin, whose operators are those that torch has now.

    Errors: TorchVersionError where torch is of another minor version than the plugin was built for.
    """
    check_version(torch.__version__)
    return os.path.join(_FOLDER, "etx_kernels_aten.so")


def check_version(installed: str) -> None:
    """Raise TorchVersionError unless the plugin was built for torch of this minor version."""
    if installed.split(".")[:2] != BUILT_FOR.split("."):
        raise TorchVersionError(
            f"etx-kernels-aten is built for torch {BUILT_FOR}, torch {installed} is installed; "
            f"install torch {BUILT_FOR}, or an etx-kernels-aten that was built for this one"
        )
