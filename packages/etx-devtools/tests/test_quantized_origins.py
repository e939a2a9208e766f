# SPDX-License-Identifier: BSD-3-Clause
"""All of an int8 network's time leads to a module and a line, on kernels and in delegates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_devtools.etdump import read_etdump
from etx_devtools.profile import Profile, profile_of
from etx_exir import to_edge_transform_and_lower
from etx_quant import XNNPACKQuantizer, get_symmetric_quantization_config, quantize
from etx_runtime import Recorder, Runtime
from etx_schema import read_pte
from torch import nn


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.conv(x))) + x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(x).mean((2, 3)))


def compiled(target: str) -> bytes:
    torch.manual_seed(0)
    quantizer, partitioner = None, None
    if target != "etx":
        config = get_symmetric_quantization_config(is_dynamic=target == "dynamic")
        quantizer = XNNPACKQuantizer().set_global(config)
        partitioner = [XnnpackPartitioner(heavy_only=False)]
    inputs = (torch.randn(1, 4, 8, 8),)
    int8 = quantize(Net().eval(), [inputs], quantizer)
    program = torch.export.export(int8, inputs)
    return to_edge_transform_and_lower(program, partitioner=partitioner).to_executorch().buffer


def profiled(content: bytes) -> Profile:
    recorder = Recorder()
    method = Runtime.get().load_program(content).load_method("forward", recorder=recorder)
    method.trace([torch.randn(1, 4, 8, 8).numpy()], recorder)
    return profile_of(read_pte(content), read_etdump(recorder.etdump()))


@pytest.mark.parametrize("target", ["etx", "xnnpack", "dynamic"])
def test_every_instruction_has_a_module_and_a_line(target: str) -> None:
    content = compiled(target)
    document = json.loads(bytes(read_pte(content).named_data["etx/debug"].data))["forward"]
    rows: list[dict[str, Any]] = [*document["instructions"], *document.get("handles", {}).values()]
    assert len(rows) > 4
    lost = [row for row in rows if not (row and row["source"] and "module" in row)]
    assert not lost
    assert {Path(row["source"].partition(":")[0]).name for row in rows} == {Path(__file__).name}
    assert profiled(content).attributed == 1
