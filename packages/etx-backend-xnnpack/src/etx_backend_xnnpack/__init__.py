# SPDX-License-Identifier: BSD-3-Clause
"""Read, write and print the graph that the XNNPACK delegate runs."""

from typing import TYPE_CHECKING, Any

from etx_backend_xnnpack._version import __version__

if TYPE_CHECKING:
    from etx_backend_xnnpack._generated.xnnpack import Graph
    from etx_backend_xnnpack.blob import XnnpackBlob, read_blob, write_blob
    from etx_backend_xnnpack.describe import describe_blob
else:

    def __getattr__(name: str) -> Any:
        """Import the module that defines `name`: a device that loads the plugin needs none."""
        from importlib import import_module

        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


_PLACES = {
    "Graph": "_generated.xnnpack",
    "XnnpackBlob": "blob",
    "describe_blob": "describe",
    "read_blob": "blob",
    "write_blob": "blob",
}

__all__ = [
    "Graph",
    "XnnpackBlob",
    "__version__",
    "describe_blob",
    "read_blob",
    "write_blob",
]
