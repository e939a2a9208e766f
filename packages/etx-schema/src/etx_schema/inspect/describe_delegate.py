# SPDX-License-Identifier: BSD-3-Clause
"""Describe the delegates of a method; a package that knows a backend prints its blobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from etx_schema._generated.program import BackendDelegate, DataLocation
from etx_schema.entry_points import contributions, describe, use
from etx_schema.errors import EtxError
from etx_schema.pte import PteFile

PRINTERS = "etx.show"


def describe_delegate(pte: PteFile, delegate: BackendDelegate) -> dict[str, Any]:
    """Describe a delegate; a package that knows its backend adds the graph."""
    blob: Any = b""
    place = delegate.processed
    if place is not None:
        inline = place.location == DataLocation.INLINE
        data = pte.program.backend_delegate_data
        blobs: list[Any] = [each.data for each in data] if inline else pte.delegates
        blob = blobs[place.index] if place.index < len(blobs) else b""
    document: dict[str, Any] = {
        "id": delegate.id,
        "bytes": len(blob),
        "compile_specs": [spec.key for spec in delegate.compile_specs],
    }
    graph = _print_blob(delegate.id or "", blob, pte)
    return document | ({"graph": graph} if graph is not None else {})


def _print_blob(backend: str, blob: Any, pte: PteFile) -> Mapping[str, Any] | None:
    for entry in contributions(PRINTERS):
        if entry.name == backend:
            try:
                document: Mapping[str, Any] = use(entry, blob, pte.named_data)
                json.dumps(document)
                list(document.get("lines", ()))
            except Exception as error:
                reason = str(error) if isinstance(error, EtxError) else describe(error)
                return {"lines": [f"the blob cannot be described: {entry.name}: {reason}"]}
            return document
    return None
