# SPDX-License-Identifier: BSD-3-Clause
"""Say what is in a delegate's blob: its sizes, and where inputs and outputs lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from etx_schema import Blob, NamedBlob

from etx_backend_arm.ethos_u.blob import Port, read_blob
from etx_backend_arm.ethos_u.report import decoded, report_key, report_lines, total_line

__all__ = ["describe_blob"]


def describe_blob(data: Blob, named_data: Mapping[str, NamedBlob]) -> dict[str, Any]:
    """Return the document of a delegate's blob; `lines` are what `etx show` prints."""
    blob = read_blob(data)
    document: dict[str, Any] = {
        "format": "vela",
        "command_bytes": len(blob.commands),
        "weight_bytes": _weights(blob.weights, named_data),
        "scratch_bytes": blob.scratch_size,
        "inputs": [asdict(port) for port in blob.inputs],
        "outputs": [asdict(port) for port in blob.outputs],
    }
    if isinstance(blob.weights, str):
        document["weights"] = blob.weights
    sizes = " ".join(f"{k} {document[f'{k}_bytes']}" for k in ("command", "weight", "scratch"))
    lines = [f"bytes: {sizes}"]
    for kind, ports in (("input", blob.inputs), ("output", blob.outputs)):
        lines += [f"{kind} {i}: {_port(port)}" for i, port in enumerate(ports)]
    stored = named_data.get(report_key(bytes(data)))
    if stored is not None:
        report = decoded(stored.data)
        lines += report_lines(report)
        document |= {"report": report, "summary": total_line(report)}
    return document | {"lines": lines}


def _weights(weights: bytes | str, named_data: Mapping[str, NamedBlob]) -> int | None:
    if isinstance(weights, bytes):
        return len(weights)
    stored = named_data.get(weights)
    return None if stored is None else memoryview(stored.data).nbytes


def _port(port: Port) -> str:
    sizes = "x".join(str(size) for size in port.shape)
    return f"{sizes} of {port.element_size} bytes at offset {port.offset} of region {port.region}"
