# SPDX-License-Identifier: BSD-3-Clause
"""Say what a graph computes: its values with their quantization, its nodes, its externals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etx_schema import Blob, NamedBlob, Table

from etx_backend_xnnpack._generated.xnnpack import (
    OutputMinMax,
    PerChannelGroupQuant,
    PerChannelQuant,
    PerTensorQuant,
    PerTokenDynamicQuant,
    XNNGraph,
    XNNQuantizedTensorValue,
    XNNTensorValue,
    XNode,
    XValue,
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
        "values": [_value(value, blob, named_data) for value in graph.xvalues],
        "nodes": [_node(node) for node in graph.xnodes],
    }
    return document | {"lines": _lines(document)}


def _value(entry: XValue, blob: XnnpackBlob, named_data: Mapping[str, NamedBlob]) -> dict[str, Any]:
    value = entry.xvalue_union
    quantized = isinstance(value, XNNQuantizedTensorValue)
    tensor = value.tensor_value if isinstance(value, XNNQuantizedTensorValue) else value
    if not isinstance(tensor, XNNTensorValue):
        return {"id": None, "type": "unknown"}
    document: dict[str, Any] = {
        "id": tensor.id_out,
        "dtype": tensor.datatype.name.removeprefix("xnn_datatype_"),
        "dims": tensor.dims,
    }
    if tensor.flags & (EXTERNAL_INPUT | EXTERNAL_OUTPUT):
        document["external"] = tensor.external_id
        document["role"] = "input" if tensor.flags & EXTERNAL_INPUT else "output"
    if tensor.constant_buffer_idx:
        document["constant"] = _constant(tensor.constant_buffer_idx, blob, named_data)
    if tensor.dq_datatype:
        document["quantized_at_run_time"] = tensor.dq_datatype.name.removeprefix("xnn_datatype_")
    if quantized and isinstance(value, XNNQuantizedTensorValue):
        document["quantization"] = _quantization(value.quant_params)
    return document


def _constant(index: int, blob: XnnpackBlob, named_data: Mapping[str, NamedBlob]) -> dict[str, Any]:
    graph: XNNGraph = blob.graph
    if index < len(graph.constant_data):
        place = graph.constant_data[index]
        if place.named_key is None:
            return {"offset": place.offset, "bytes": place.size}
        stored = named_data.get(place.named_key)
        size = None if stored is None else memoryview(stored.data).nbytes
        return {"name": place.named_key, "bytes": size}
    if index < len(graph.constant_buffer):
        return {"inline": index, "bytes": len(graph.constant_buffer[index].storage)}
    return {"missing": index, "bytes": None}


def _quantization(parameters: object) -> dict[str, Any]:
    if isinstance(parameters, PerTensorQuant):
        return {"scale": parameters.scale, "zero_point": parameters.zero_point}
    if isinstance(parameters, PerChannelQuant):
        count = parameters.num_scales or len(parameters.scale)
        return {"channel_dim": parameters.channel_dim, "scales": count}
    if isinstance(parameters, PerChannelGroupQuant):
        count = parameters.num_scales or len(parameters.scale)
        group = parameters.group_size
        return {"channel_dim": parameters.channel_dim, "scales": count, "group_size": group}
    if isinstance(parameters, PerTokenDynamicQuant):
        return {"dynamic": True, "nonbatch_dims": parameters.num_nonbatch_dims}
    return {"unknown": True}


def _node(node: XNode) -> dict[str, Any]:
    payload = node.xnode_union
    inputs: dict[str, int] = {}
    outputs: dict[str, int] = {}
    attributes: dict[str, Any] = {}
    for item in payload.FIELDS if isinstance(payload, Table) else ():
        content = getattr(payload, item.name)
        if item.name.endswith("_id"):
            (outputs if item.name.startswith("output") else inputs)[item.name[:-3]] = content
        elif content or item.name == "axis":
            attributes[item.name] = content
    op = node.xnode_union_type.name.removeprefix("XNN")
    if op.startswith("Concatenate"):
        inputs = dict(list(inputs.items())[: int(op.removeprefix("Concatenate"))])
    document: dict[str, Any] = {
        "op": op,
        "inputs": {name: None if i == NONE else i for name, i in inputs.items()},
        "outputs": list(outputs.values()),
        "attributes": attributes,
        "debug_handle": node.debug_handle,
    }
    if isinstance(node.output_min_max, OutputMinMax):
        clamp = node.output_min_max
        document["clamp"] = [repr(clamp.output_min), repr(clamp.output_max)]
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
        elif name not in ("num_dims", "group_output_channels"):
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
