# SPDX-License-Identifier: BSD-3-Clause
"""A backend for tests: additions and products become a list of instructions in JSON."""

from __future__ import annotations

import io
import json

import torch
from etx_exir import BackendDetails, DelegationSpec, Partitioner, PartitionResult, PreprocessResult
from etx_exir.partitioners import tag_constant_data
from torch.fx import Node
from torch.utils import _pytree as pytree

aten = torch.ops.aten

TAKEN = {aten.add.Tensor: "add", aten.mul.Tensor: "mul", aten.hardswish.default: "hardswish"}


class ToyBackend(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        signature = edge_program.graph_signature
        rows = [
            [TAKEN[node.target], node.name, *(arg.name for arg in node.all_input_nodes)]
            for node in edge_program.graph.nodes
            if node.op == "call_function"
        ]
        tensors = {**edge_program.constants, **edge_program.state_dict}
        held = {s.arg.name: tensors[s.target].tolist() for s in signature.input_specs if s.target}
        content = {
            "inputs": signature.user_inputs,
            "rows": rows,
            "outputs": signature.user_outputs,
            "held": held,
        }
        return PreprocessResult(json.dumps(content).encode())


class ToyPartitioner(Partitioner):
    """Every node that is taken becomes a delegate with its taken neighbours."""

    def __init__(self, backend="ToyBackend", preserve=()):
        self.backend, self.preserve = backend, list(preserve)

    def partition(self, exported_program):
        tags = {}
        for module in [exported_program.graph_module, *branches(exported_program.graph_module)]:
            tag = None
            for node in module.graph.nodes:
                if node.target in TAKEN:
                    tag = tag or f"toy{len(tags)}"
                    node.meta["delegation_tag"] = tag
                    tags[tag] = DelegationSpec(self.backend)
                elif node.op == "call_function":
                    tag = None
        tag_constant_data(exported_program)
        return PartitionResult(exported_program, tags)

    def ops_to_not_decompose(self, exported_program):
        return self.preserve, None

    def why_not(self, node: Node):
        if node.target in TAKEN:
            return None
        return f"{node.target} is neither an addition nor a product"


def branches(module):
    for child in module.children():
        if isinstance(child, torch.fx.GraphModule):
            yield child
            yield from branches(child)


class SavedBackend(BackendDetails):
    """The blob is the partition's own program, as `torch.export.save` writes it."""

    @staticmethod
    def preprocess(edge_program, compile_specs):
        file = io.BytesIO()
        torch.export.save(edge_program, file)
        return PreprocessResult(file.getvalue())


def load_saved(blob, specs):
    """Return how many inputs a `SavedBackend`'s delegate takes, and its function."""
    program = torch.export.load(io.BytesIO(bytes(blob)))
    module = program.module(check_guards=False)
    count = len(program.graph_signature.user_inputs)

    def run(*inputs):
        args, kwargs = pytree.tree_unflatten(inputs, program.call_spec.in_spec)
        return pytree.tree_leaves(module(*args, **kwargs))

    return count, run


def load_toy(blob, specs):
    """Return the same of a `ToyBackend`; the compile spec `scale` multiplies what it returns."""
    content = json.loads(bytes(blob))
    scale = float(bytes(specs.get("scale", b"1")))
    functions = {"add": torch.add, "mul": torch.mul, "hardswish": torch.nn.functional.hardswish}

    def run(*inputs):
        given = {name: torch.tensor(value) for name, value in content["held"].items()}
        given.update(zip(content["inputs"], inputs, strict=True))
        for op, name, *args in content["rows"]:
            given[name] = functions[op](*(given[arg] for arg in args))
        return [given[name] * scale for name in content["outputs"]]

    return len(content["inputs"]), run


DELEGATES = {"ToyBackend": load_toy, "SavedBackend": load_saved}
