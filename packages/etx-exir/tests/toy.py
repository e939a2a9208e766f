# SPDX-License-Identifier: BSD-3-Clause
"""A backend for tests: additions and products become a list of instructions in JSON."""

from __future__ import annotations

import json

import torch
from etx_exir import BackendDetails, DelegationSpec, Partitioner, PartitionResult, PreprocessResult
from torch.fx import Node

aten = torch.ops.aten

TAKEN = {aten.add.Tensor: "add", aten.mul.Tensor: "mul", aten.hardswish.default: "hardswish"}


class ToyBackend(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        rows = [
            [TAKEN[node.target], node.name, *(arg.name for arg in node.all_input_nodes)]
            for node in edge_program.graph.nodes
            if node.op == "call_function"
        ]
        held = {name: t.tolist() for name, t in edge_program.constants.items()}
        held.update({name: t.tolist() for name, t in edge_program.state_dict.items()})
        return PreprocessResult(json.dumps({"rows": rows, "held": held}).encode())


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
