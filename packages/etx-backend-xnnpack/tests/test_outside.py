# SPDX-License-Identifier: BSD-3-Clause
"""Constants of a delegate lie in a file of tensors of their own where their meta names one."""

from __future__ import annotations

from pathlib import Path

import etx_runtime
import pytest
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from etx_quant import quantize
from torch import nn
from torch.fx import Node

RECIPES = None, "int8", "int8-dynamic", "int4"
PLACES = {"all": "all", "first": "first", "second": "first second"}
"""Of models whose constants are tagged so: the files that there are."""


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32), nn.Linear(32, 8)).eval()


def constants_of(layer: Node) -> list[Node]:
    """Return what a layer reads that is constant, through its dequantization."""
    found, pending = [], list(layer.all_input_nodes[1:])
    while pending:
        node = pending.pop()
        found += [node] if node.op == "get_attr" else []
        pending += node.all_input_nodes
    return found


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("per_op", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_constants_lie_outside_by_their_tags(
    place: str, per_op: bool, recipe: str | None, tmp_path: Path
) -> None:
    example = (torch.rand(2, 32),)
    model = net() if recipe is None else quantize(net(), [example], recipe=recipe)
    unlifted = torch.export.export(model, example).module()
    layers = [n for n in unlifted.graph.nodes if n.target is torch.ops.aten.linear.default]
    tags = {"all": ("all",) * 3, "first": ("first",), "second": ("first", "second")}[place]
    for layer, tag in zip(layers, tags, strict=False):
        for constant in constants_of(layer):
            constant.meta.setdefault("custom", {})["delegate_constant_tag"] = tag
    program = torch.export.export(unlifted, example, strict=True)
    partitioner = XnnpackPartitioner(heavy_only=False, per_op_mode=per_op)
    lowered = to_edge_transform_and_lower(program, partitioner=[partitioner]).to_executorch()
    lowered.write_tensor_data_to_file(tmp_path)
    files = sorted(tmp_path.glob("*.ptd"))
    assert " ".join(file.stem for file in files) == PLACES[place]
    inside = [key for key in lowered.pte_file.named_data if not key.startswith("etx/")]
    assert bool(inside) == (place != "all")
    run = etx_runtime.load(lowered.buffer, data=files, outputs="torch")
    torch.testing.assert_close(run(*example), model(*example), rtol=0.02, atol=0.02)
