# SPDX-License-Identifier: BSD-3-Clause
"""The number of threads that kernels may use."""

from __future__ import annotations

from etx_runtime import _native


def set_num_threads(num_threads: int) -> None:
    """Let kernels use `num_threads` threads; 0 means one for each usable core."""
    _native.set_num_threads(num_threads)


def get_num_threads() -> int:
    """Return the number of threads that kernels may use."""
    return _native.num_threads()
