# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of the page as model-explorer node data, for its view of the same file."""

from __future__ import annotations

from typing import Any

from etx_schema import Blob, program_of, read_pte
from etx_schema.files import PathLike, load_bytes

__all__ = ["overlay"]

GRADIENT = ((0.0, "#e9eef5"), (0.5, "#719ccc"), (1.0, "#08306b"))


def overlay(source: PathLike | Blob, document: dict[str, Any]) -> dict[str, Any]:
    """Return node data by method: times where the document has them, else errors, else bytes.

    Nodes are named as model-explorer's PTE adapter names them: method, chain, instruction.
    """
    graphs = {}
    found = {method["name"]: method for method in document["methods"]}
    for plan in read_pte(program_of(load_bytes(source))).program.execution_plan:
        name = plan.name or ""
        places = [
            f"{name}_{chain}_{place}"
            for chain, each in enumerate(plan.chains)
            for place in range(len(each.instructions))
        ]
        title, values = _values(found[name])
        graphs[name] = {
            "name": title,
            "results": {places[index]: {"value": value} for index, value in values.items()},
            "gradient": [{"stop": stop, "bgColor": colour} for stop, colour in GRADIENT],
        }
    return graphs


def _values(method: dict[str, Any]) -> tuple[str, dict[int, float]]:
    if method["times"] is not None:
        return "time (ms)", dict(enumerate(method["times"]))
    if method["errors"] is not None:
        return "error made here", {int(row[0]): row[1] for row in method["errors"]}
    return "bytes of results", {index: row[7] for index, row in enumerate(method["rows"])}
