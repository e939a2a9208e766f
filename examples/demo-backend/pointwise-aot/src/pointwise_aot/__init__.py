# SPDX-License-Identifier: BSD-3-Clause
"""Chains of pointwise operators as one delegate: the half for the build host."""

from __future__ import annotations

from pointwise_aot._version import __version__
from pointwise_aot.lowering import PointwiseBackend, PointwisePartitioner, partitioner

__all__ = ["PointwiseBackend", "PointwisePartitioner", "__version__", "partitioner"]
