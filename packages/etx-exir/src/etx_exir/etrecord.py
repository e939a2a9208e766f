# SPDX-License-Identifier: BSD-3-Clause
"""ExecuTorch's ETRecord: what a file was compiled from, for its Inspector and for ETX's.

A zip of programs as torch serializes them and of maps by method and instruction. ETX's files say
themselves where their instructions come from; a record adds the programs.
"""

from __future__ import annotations

import copy
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, cast

import torch
from etx_schema.files import write_atomically
from torch._export.serde.schema import SCHEMA_VERSION
from torch._export.serde.serialize import SerializedArtifact, deserialize, serialize
from torch.export import ExportedProgram

from etx_exir.errors import ConfigError
from etx_exir.ir.debug_handles import handle_of, number_nodes
from etx_exir.ir.equal_values import note_of
from etx_exir.lower.copy_program import copy_program

__all__ = ["ETRecord", "generate_etrecord", "parse_etrecord"]

IDENTIFIER = "ETRECORD_V0"
EXPORTED, EDGE = "exported_program", "edge_dialect_exported_program"
EDGE_OPERATORS, OPERATORS = "executorch.exir.dialects.edge.ops.", "torch.ops."
MAPS = ("debug_handle_map", "delegate_map", "instruction_id_to_num_outs_map")
THEIR_VERSION = {"major": 5, "minor": 4}
LATER = {"torch_version", "guards_code", "treespec_namedtuple_fields", "sym_float_values"}
LATER |= {"is_hop_single_tensor_return", "forward_arg_names"}
"""What torch's serializer writes since the version that ExecuTorch 1.5.1 reads."""
PARTS = ("state_dict", "constants", "example_inputs")
Destination = str | os.PathLike[str] | IO[bytes]


@dataclass
class ETRecord:
    """Programs by method, and maps from the instructions of a file to what they were made of."""

    exported_program: ExportedProgram | None = None
    export_graph_id: int = 0
    edge_dialect_program: ExportedProgram | dict[str, ExportedProgram] | None = None
    graph_map: dict[str, ExportedProgram] = field(default_factory=dict)
    _debug_handle_map: dict[str, Any] | None = None
    _delegate_map: dict[str, Any] | None = None
    _instruction_id_to_num_outs_map: dict[str, Any] | None = None
    _reference_outputs: dict[str, list[Any]] | None = None
    _representative_inputs: Any = None

    def add_exported_program(
        self, exported_program: ExportedProgram | Mapping[str, ExportedProgram] | None
    ) -> None:
        """Keep what was exported; of several methods `forward`, or the only one."""
        if isinstance(exported_program, Mapping):
            named = dict(exported_program)
            first = next(iter(named)) if len(named) == 1 else "forward"
            exported_program = named.get(first)
        self.exported_program = exported_program
        self.export_graph_id = id(exported_program.graph) if exported_program else 0

    def add_edge_dialect_program(self, edge_dialect_program: Any) -> None:
        """Keep copies of the Edge programs of a manager, as they are now."""
        names = sorted(edge_dialect_program.methods)
        found = {name: copy_program(edge_dialect_program.exported_program(name)) for name in names}
        self.keep_edge(found)

    def keep_edge(self, programs: Mapping[str, ExportedProgram]) -> None:
        """Keep Edge programs by method."""
        for program in programs.values():
            number_nodes(program)
        only = list(programs.values())
        self.edge_dialect_program = only[0] if [*programs] == ["forward"] else dict(programs)

    def add_executorch_program(self, executorch_program: Any) -> None:
        """Keep the maps of a finished file."""
        self._debug_handle_map = executorch_program.debug_handle_map
        self._delegate_map = executorch_program.delegate_map
        self._instruction_id_to_num_outs_map = executorch_program.instruction_id_to_num_outs_map

    def add_extra_export_modules(
        self, extra_recorded_export_modules: Mapping[str, ExportedProgram]
    ) -> None:
        """Keep other programs by name, those of methods as `name/method`."""
        for name, program in extra_recorded_export_modules.items():
            self.graph_map[name if "/" in name else f"{name}/forward"] = program

    def update_representative_inputs(self, representative_inputs: Any) -> None:
        """Keep the inputs that the values of a dump were computed of."""
        self._representative_inputs = representative_inputs

    def update_reference_outputs(
        self, reference_outputs: Mapping[str, Sequence[Any]] | Sequence[Any]
    ) -> None:
        """Keep what the model returns, by method or of `forward`."""
        given = reference_outputs
        by_method = dict(given) if isinstance(given, Mapping) else {"forward": list(given)}
        self._reference_outputs = {name: list(items) for name, items in by_method.items()}

    def copy(self) -> ETRecord:
        """Return a record that can be added to apart from this one."""
        other = copy.copy(self)
        other.graph_map = dict(self.graph_map)
        return other

    def save(self, path: Destination) -> None:
        """Write the record, the whole file or nothing. Errors: ConfigError of a program."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(IDENTIFIER, "")
            if self.exported_program is not None:
                _write(archive, EXPORTED, self.exported_program)
                archive.writestr("export_graph_id", json.dumps(self.export_graph_id))
            for name, program in self.edge_programs().items():
                _write(archive, f"{EDGE}/{name}", program, is_edge=True)
            for name, program in self.graph_map.items():
                _write(archive, name, program)
            for name in MAPS:
                found = getattr(self, f"_{name}")
                if found is not None:
                    archive.writestr(name, json.dumps(found))
            for name in ("reference_outputs", "representative_inputs"):
                found = getattr(self, f"_{name}")
                if found is not None:
                    archive.writestr(name, _saved(found))
        if isinstance(path, (str, os.PathLike)):
            write_atomically(path, [buffer.getvalue()])
        else:
            path.write(buffer.getvalue())

    def edge_programs(self) -> dict[str, ExportedProgram]:
        """Return the Edge programs by method."""
        program = self.edge_dialect_program
        if program is None:
            return {}
        return {"forward": program} if isinstance(program, ExportedProgram) else dict(program)


def generate_etrecord(
    et_record: Destination,
    edge_dialect_program: Any,
    executorch_program: Any,
    extra_recorded_export_modules: Mapping[str, ExportedProgram] | None = None,
) -> None:
    """Write a record of Edge programs and of the file that they became."""
    record = ETRecord()
    record.add_edge_dialect_program(edge_dialect_program)
    record.add_executorch_program(executorch_program)
    record.add_extra_export_modules(extra_recorded_export_modules or {})
    record.save(et_record)


def parse_etrecord(etrecord_path: Destination) -> ETRecord:
    """Read a record of ETX or ExecuTorch. Errors: ConfigError where it is none."""
    try:
        with zipfile.ZipFile(cast(Any, etrecord_path)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ConfigError(f"{etrecord_path}: not an ETRecord, which is a zip ({error})") from error
    if IDENTIFIER not in parts:
        raise ConfigError(f"{etrecord_path}: a zip without {IDENTIFIER}: not an ETRecord")
    record = ETRecord()
    programs = [
        name for name in parts if f"{name}_state_dict" in parts and f"{name}_constants" in parts
    ]
    edge: dict[str, ExportedProgram] = {}
    for name in programs:
        program = _read(name, parts)
        if name == EXPORTED:
            record.exported_program = program
        elif name.startswith(f"{EDGE}/"):
            edge[name.removeprefix(f"{EDGE}/")] = program
        else:
            record.graph_map[name] = program
    if edge:
        record.edge_dialect_program = edge["forward"] if [*edge] == ["forward"] else edge
    record.export_graph_id = json.loads(parts.get("export_graph_id", b"0"))
    record._debug_handle_map = _numbered(parts.get("debug_handle_map"))
    record._delegate_map = _numbered(parts.get("delegate_map"))
    record._instruction_id_to_num_outs_map = _numbered(parts.get(MAPS[2]))
    record._reference_outputs = _loaded(parts.get("reference_outputs"))
    record._representative_inputs = _loaded(parts.get("representative_inputs"))
    return record


def _write(
    archive: zipfile.ZipFile, name: str, program: ExportedProgram, is_edge: bool = False
) -> None:
    try:
        artifact = serialize(program)
    except Exception as error:
        raise ConfigError(
            f"the ETRecord's {name} cannot be serialized: {error}; record the program before it "
            "is delegated, as generate_etrecord=True does"
        ) from error
    tree = json.loads(artifact.exported_program)
    tree |= {"schema_version": THEIR_VERSION, "dialect": "EDGE" if is_edge else ""}
    tree["graph_module"].pop("metadata", None)
    _drop_later(tree)
    document = json.dumps(tree)
    if is_edge:
        document = _with_handles(tree, program).replace(f'"{OPERATORS}', f'"{EDGE_OPERATORS}')
    archive.writestr(name, document)
    for suffix in PARTS:
        archive.writestr(f"{name}_{suffix}", getattr(artifact, suffix))


def _with_handles(tree: Any, program: ExportedProgram) -> str:
    """Return a program as text, with debug handles and which exported values nodes equal."""
    nodes = {node.name: node for node in program.graph.nodes}
    for row in tree["graph_module"]["graph"]["nodes"]:
        node = nodes.get(row.get("name") or "")
        if node is None:
            outputs = [item.get("as_tensor", {}).get("name") for item in row["outputs"]]
            node = next((nodes[name] for name in outputs if name in nodes), None)
        if node is None:
            continue
        handle, note = handle_of(node), note_of(node)
        if handle:
            row["metadata"]["debug_handle"] = str(handle)
        if note is not None:
            row["metadata"]["equals"] = json.dumps(note)
    return json.dumps(tree)


def _read(name: str, parts: Mapping[str, bytes]) -> ExportedProgram:
    tree = json.loads(parts[name].replace(EDGE_OPERATORS.encode(), OPERATORS.encode()))
    tree["schema_version"] = dict(zip(("major", "minor"), SCHEMA_VERSION, strict=True))
    tree["dialect"], tree["verifiers"] = "ATEN", []
    document = json.dumps(tree).encode()
    empty = _saved({})
    rest = {key: parts.get(f"{name}_{key}", empty) for key in PARTS}
    try:
        program = deserialize(SerializedArtifact(document, **rest))
    except Exception as error:
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(f"the ETRecord's {name} cannot be read: {text}") from error
    for row in tree["graph_module"]["graph"]["nodes"]:
        handle = row["metadata"].get("debug_handle", "")
        for node in program.graph.nodes if handle.isdecimal() else ():
            if node.name == row.get("name"):
                node.meta["debug_handle"] = int(handle)
    return program


def _drop_later(tree: Any) -> None:
    for item in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(item, (dict, list)):
            _drop_later(item)
    if isinstance(tree, dict):
        for key in LATER & set(tree):
            del tree[key]
        if "arg" in tree and "kind" in tree:
            del tree["kind"]


def _saved(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _loaded(content: bytes | None) -> Any:
    return None if content is None else torch.load(io.BytesIO(content), weights_only=True)


def _numbered(content: bytes | None) -> dict[str, Any] | None:
    if content is None:
        return None
    rows = json.loads(content)
    return {m: {int(key): item for key, item in by.items()} for m, by in rows.items()}
