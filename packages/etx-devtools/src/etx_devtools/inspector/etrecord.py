# SPDX-License-Identifier: BSD-3-Clause
"""What an ETRecord says of instructions; reading it needs no torch."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from etx_schema import EtxError

from etx_devtools.inspector.blocks import Event, EventBlock

__all__ = ["Record", "add_record", "read_record"]

IDENTIFIER = "ETRECORD_V0"
EDGE = "edge_dialect_exported_program/"
MAPS = ("debug_handle_map", "delegate_map")


@dataclass
class _Node:
    """A node of an Edge program as the record has it."""

    name: str
    operator: str
    handle: int
    stack_trace: str
    modules: dict[str, tuple[str, str]]
    sources: list[str]
    equals: Any = None


@dataclass
class Record:
    """Maps by method and instruction, and the nodes of Edge programs by method and handle."""

    handles: dict[str, dict[int, Any]] = field(default_factory=dict)
    delegates: dict[str, dict[int, Any]] = field(default_factory=dict)
    nodes: dict[str, dict[int, list[_Node]]] = field(default_factory=dict)

    def of(self, method: str, handles: Iterable[int]) -> list[_Node]:
        """Return the nodes with one of `handles`."""
        known = self.nodes.get(method, {})
        return [node for handle in handles for node in known.get(handle, [])]

    def handles_of(self, method: str, instruction: int) -> list[int]:
        """Return the handles of an instruction."""
        found = self.handles.get(method, {}).get(instruction, [])
        return [found] if isinstance(found, int) else list(found)

    def handles_within(self, method: str, instruction: int, identifier: object) -> list[int]:
        """Return the handles of what a backend calls `identifier`, of its whole call if unknown."""
        row = self.delegates.get(method, {}).get(instruction, {})
        ids = row.get("delegate_map", {})
        found = ids.get(str(identifier), ids.get(identifier))
        return self.handles_of(method, instruction) if found is None else list(found)


def read_record(source: Any) -> Record:
    """Read a file, or an `ETRecord`. Errors: EtxError where it is none."""
    if hasattr(source, "save") and not isinstance(source, (str, os.PathLike)):
        buffer = io.BytesIO()
        source.save(buffer)
        source = buffer
    try:
        with zipfile.ZipFile(source) as archive:
            names = archive.namelist()
            if IDENTIFIER not in names:
                raise EtxError(f"{source}: a zip without {IDENTIFIER}: not an ETRecord")
            maps = [_map(archive.read(n)) if n in names else {} for n in MAPS]
            programs = {
                name.removeprefix(EDGE): json.loads(archive.read(name))
                for name in names
                if name.startswith(EDGE) and f"{name}_state_dict" in names
            }
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise EtxError(f"{source}: not an ETRecord ({error})") from error
    nodes = {name: _nodes(document) for name, document in programs.items()}
    return Record(maps[0], maps[1], nodes)


def add_record(blocks: Iterable[EventBlock], record: Record) -> None:
    """Fill in operators, modules, stack traces, handles and backends of events, where known."""
    methods = [*record.handles]
    default = methods[0] if len(methods) == 1 else "forward"
    for block in blocks:
        method = block.method or default
        for event in block.events:
            if event.chain == 0:
                _fill(event, method, record)


def _fill(event: Event, method: str, record: Record) -> None:
    backend = record.delegates.get(method, {}).get(event.instruction, {}).get("name")
    if event.is_delegated_op:
        event.delegate_backend_name = backend
        name = event.delegate_debug_identifier
        handles = record.handles_within(method, event.instruction, name)
    else:
        handles = record.handles_of(method, event.instruction)
    event.debug_handles = handles[0] if len(handles) == 1 else (handles or None)
    nodes = record.of(method, handles)
    event.op_types = [node.operator for node in nodes]
    event.stack_traces = {f"{n.name}_": n.stack_trace for n in nodes if n.stack_trace}
    event.module_hierarchy = {f"{n.name}_": n.modules for n in nodes if n.modules}


def _map(content: bytes) -> dict[str, dict[int, Any]]:
    rows = json.loads(content)
    return {method: {int(key): item for key, item in by.items()} for method, by in rows.items()}


def _nodes(document: Mapping[str, Any]) -> dict[int, list[_Node]]:
    found: dict[int, list[_Node]] = {}
    for row in document["graph_module"]["graph"]["nodes"]:
        metadata = row.get("metadata", {})
        handle = metadata.get("debug_handle", "")
        if not handle.isdecimal():
            continue
        outputs = [item["as_tensor"]["name"] for item in row["outputs"] if "as_tensor" in item]
        equals = json.loads(metadata["equals"]) if "equals" in metadata else None
        node = _Node(
            row.get("name") or (outputs[0] if outputs else ""),
            re.sub(r"^(executorch\.exir\.dialects\.edge|torch)\.ops\.", "", row["target"]),
            int(handle),
            metadata.get("stack_trace", ""),
            _modules(metadata.get("nn_module_stack", "")),
            _sources(metadata.get("from_node", "")),
            equals,
        )
        found.setdefault(node.handle, []).append(node)
    return found


def _modules(text: str) -> dict[str, tuple[str, str]]:
    """Read `key,path,type;...` as torch serializes it."""
    rows = [item.split(",") for item in text.split(";") if item.count(",") == 2]
    return {key: (path, kind) for key, path, kind in rows}


def _sources(text: str) -> list[str]:
    """Return the names of the nodes that a node was made of, the oldest last."""
    chain = json.loads(text) if text else []
    names = []
    while chain:
        names.append(chain[-1]["name"])
        chain = chain[-1].get("from_node", [])
    return names
