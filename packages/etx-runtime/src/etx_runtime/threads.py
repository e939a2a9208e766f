# SPDX-License-Identifier: BSD-3-Clause
"""The number of threads that kernels and delegates may use."""

from __future__ import annotations

from etx_runtime import _native


def set_num_threads(num_threads: int) -> None:
    """Let kernels and delegates use `num_threads` threads, 1024 at most, the caller's included.

    0 stands for the environment's `ETX_NUM_THREADS`, or without it for the cores that affinity and
    control groups leave to the process. Any thread may call it at any time; it takes effect with
    the next kernel. Raise `ValueError` for another number.
    """
    if not 0 <= num_threads <= 1024:
        raise ValueError(f"expected 0 to 1024 threads, got {num_threads}")
    _native.set_num_threads(num_threads)


def get_num_threads() -> int:
    """Return the number of threads that kernels and delegates may use."""
    return _native.num_threads()
