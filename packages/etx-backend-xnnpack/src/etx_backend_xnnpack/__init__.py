# SPDX-License-Identifier: BSD-3-Clause
"""Read, write and print the graph that the XNNPACK delegate runs."""

from etx_backend_xnnpack._generated.xnnpack import Graph
from etx_backend_xnnpack._version import __version__
from etx_backend_xnnpack.blob import XnnpackBlob, read_blob, write_blob
from etx_backend_xnnpack.describe import describe_blob

__all__ = [
    "Graph",
    "XnnpackBlob",
    "__version__",
    "describe_blob",
    "read_blob",
    "write_blob",
]
