# SPDX-License-Identifier: BSD-3-Clause
"""Say what a graph computes: its values with their quantization, its nodes, its externals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etx_schema import Blob, NamedBlob, Table

from etx_backend_xnnpack._generated.xnnpack import (
    Graph,
    Node,
    OutputRange,
    PerChannel,
    PerGroup,
    PerRow,
    PerTensor,
    QuantizedTensorValue,
    TensorValue,
    Value,
)
from etx_backend_xnnpack.blob import XnnpackBlob, read_blob

NONE = 2**32 - 1
EXTERNAL_INPUT, EXTERNAL_OUTPUT = 1, 2


def describe_blob(data: Blob, named_data: Mapping[str, NamedBlob]) -> dict[str, Any]:
    """Return the document of a delegate's blob; `lines` are what `etx show` prints."""
    blob = read_blob(data)
    graph = blob.graph
    document: dict[str, Any] = {
        "format": blob.identifier,
        "inputs": graph.input_ids,
        "outputs": graph.output_ids,
        "values": [_value(value, blob, named_data) for value in graph.values],
        "nodes": [_node(node) for node in graph.nodes],
    }
    return document | {"lines": _lines(document)}


def _value(entry: Value, blob: XnnpackBlob, named_data: Mapping[str, NamedBlob]) -> dict[str, Any]:
    value = entry.tensor
    quantized = isinstance(value, QuantizedTensorValue)
    tensor = value.tensor if isinstance(value, QuantizedTensorValue) else value
    if not isinstance(tensor, TensorValue):
        return {"id": None, "type": "unknown"}
    document: dict[str, Any] = {
        "id": tensor.id,
        "dtype": tensor.dtype.name.lower(),
        "dims": tensor.sizes,
    }
    if tensor.flags & (EXTERNAL_INPUT | EXTERNAL_OUTPUT):
        document["external"] = tensor.external_id
        document["role"] = "input" if tensor.flags & EXTERNAL_INPUT else "output"
    if tensor.constant_index:
        document["constant"] = _constant(tensor.constant_index, blob, named_data)
    if tensor.run_time_dtype:
        document["quantized_at_run_time"] = tensor.run_time_dtype.name.lower()
    if quantized and isinstance(value, QuantizedTensorValue):
        document["quantization"] = _quantization(value.quantization)
    return document


def _constant(index: int, blob: XnnpackBlob, named_data: Mapping[str, NamedBlob]) -> dict[str, Any]:
    graph: Graph = blob.graph
    if index < len(graph.constant_data):
        place = graph.constant_data[index]
        if place.named_key is None:
            return {"offset": place.offset, "bytes": place.size}
        stored = named_data.get(place.named_key)
        size = None if stored is None else memoryview(stored.data).nbytes
        return {"name": place.named_key, "bytes": size}
    if index < len(graph.inline_constants):
        return {"inline": index, "bytes": len(graph.inline_constants[index].data)}
    return {"missing": index, "bytes": None}


def _quantization(parameters: object) -> dict[str, Any]:
    if isinstance(parameters, PerTensor):
        return {"scale": parameters.scale, "zero_point": parameters.zero_point}
    if isinstance(parameters, PerChannel):
        count = parameters.num_scales or len(parameters.scale)
        return {"channel_dim": parameters.channel_dim, "scales": count}
    if isinstance(parameters, PerGroup):
        count = parameters.num_scales or len(parameters.scale)
        group = parameters.group_size
        return {"channel_dim": parameters.channel_dim, "scales": count, "group_size": group}
    if isinstance(parameters, PerRow):
        return {"dynamic": True, "nonbatch_dims": parameters.num_nonbatch_dims}
    return {"unknown": True}


def _node(node: Node) -> dict[str, Any]:
    payload = node.operator
    inputs: dict[str, int] = {}
    outputs: dict[str, int] = {}
    attributes: dict[str, Any] = {}
    for item in payload.FIELDS if isinstance(payload, Table) else ():
        content = getattr(payload, item.name)
        if item.name.endswith("_id"):
            (outputs if item.name.startswith("output") else inputs)[item.name[:-3]] = content
        elif content or item.name == "axis":
            attributes[item.name] = content
    op = node.operator_type.name
    if op.startswith("Concatenate"):
        inputs = dict(list(inputs.items())[: int(op.removeprefix("Concatenate"))])
    document: dict[str, Any] = {
        "op": op,
        "inputs": {name: None if i == NONE else i for name, i in inputs.items()},
        "outputs": list(outputs.values()),
        "attributes": attributes,
        "debug_handle": node.debug_handle,
    }
    if isinstance(node.output_range, OutputRange):
        clamp = node.output_range
        document["clamp"] = [repr(clamp.lowest), repr(clamp.highest)]
    return document


def _lines(document: dict[str, Any]) -> list[str]:
    lines = []
    for row in document["values"]:
        text = f"v{row['id']}: {row.get('dtype', row.get('type'))}{row.get('dims', '')}"
        if "role" in row:
            text += f" {row['role']} {row['external']}"
        if "constant" in row:
            text += f" {_constant_text(row['constant'])}"
        if "quantized_at_run_time" in row:
            text += f" quantized at run time to {row['quantized_at_run_time']}"
        if "quantization" in row:
            text += " " + ", ".join(f"{k} {_number(v)}" for k, v in row["quantization"].items())
        lines.append(text)
    for row in document["nodes"]:
        left = ", ".join(f"v{i}" for i in row["outputs"])
        arguments = [f"v{i}" for i in row["inputs"].values() if i is not None]
        arguments += [f"{name} {value}" for name, value in _short(row["attributes"]).items()]
        text = f"{left} = {row['op']}({', '.join(arguments)})"
        if "clamp" in row:
            text += f" clamped to [{', '.join(row['clamp'])}]"
        lines.append(text)
    return lines


def _short(attributes: dict[str, Any]) -> dict[str, Any]:
    """Join heights and widths, and leave out what follows from the shapes or is usual."""
    short: dict[str, Any] = {}
    for name, value in attributes.items():
        stem, _, side = name.rpartition("_")
        if side in ("height", "width"):
            pair = [attributes.get(f"{stem}_{each}", 0) for each in ("height", "width")]
            if pair != [1, 1] or stem == "kernel":
                short[stem] = f"{pair[0]}x{pair[1]}"
        elif stem == "padding" and side != "value":
            sides = ("top", "right", "bottom", "left")
            short[stem] = "/".join(str(attributes.get(f"{stem}_{each}", 0)) for each in sides)
        elif name == "group_input_channels":
            short["channels"] = f"{value}->{attributes.get('group_output_channels', 0)}"
        elif name not in ("rank", "group_output_channels"):
            short[name] = _number(value)
    return {name: value for name, value in short.items() if (name, value) != ("groups", "1")}


def _constant_text(constant: dict[str, Any]) -> str:
    if "missing" in constant:
        return f"constant {constant['missing']}, which is not there"
    size = "in a .ptd" if constant["bytes"] is None else f"{constant['bytes']:,} bytes"
    name = constant.get("name")
    if name is None:
        return f"constant, {size}"
    return f"constant {name[:12] + '…' if len(name) > 13 else name}, {size}"


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
