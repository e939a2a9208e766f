# SPDX-License-Identifier: BSD-3-Clause
"""What XNNPACK's operators took, told to whoever records."""

from __future__ import annotations

from itertools import pairwise

import etx_schema as es
import numpy as np
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from etx_runtime import Recorder, Runtime
from etx_schema._generated.etdump import ETDump, ProfileEvent
from etx_schema.inspect.describe_method import Method


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Linear(64, 64)
        self.two = torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.two(torch.tanh(self.one(x))), -1)


def record(program: bytes, is_told_at_load: bool) -> list[ProfileEvent]:
    recorder = Recorder()
    early = recorder if is_told_at_load else None
    method = Runtime.get().load_program(program).load_method("forward", recorder=early)
    x = np.random.default_rng(0).standard_normal((256, 64)).astype(np.float32)
    expected = method.execute([x])[0]
    np.testing.assert_array_equal(method.trace([x], recorder)[0], expected)
    dump = es.decode_size_prefixed(ETDump, recorder.etdump(), "ED00")
    return [event.profile_event for event in dump.run_data[-1].events if event.profile_event]


def test_operators_are_told_in_order() -> None:
    exported = torch.export.export(Net().eval(), (torch.ones(256, 64),))
    program = to_edge_transform_and_lower(
        exported, partitioner=[XnnpackPartitioner(heavy_only=False)]
    )
    content = program.to_executorch().buffer
    *inner, call, _ = record(content, True)
    names = [event.delegate_debug_id_str or "" for event in inner]
    assert [name.partition(" ")[0] for name in names] == ["Fully", "Unary", "Fully", "Softmax"]
    assert [name.rpartition(" ")[2] for name in names] == ["#1", "#1", "#2", "#1"]
    assert (call.name, {event.instruction_id for event in inner}) == ("DELEGATE_CALL", {0})
    assert call.start_time <= inner[0].start_time
    for one, other in pairwise(inner):
        assert one.start_time <= one.end_time == other.start_time
    assert [event.name for event in record(content, False)] == ["DELEGATE_CALL", "Method::execute"]


def test_the_file_says_which_instruction_each_operator_is_of() -> None:
    """In the order and by the kind that XNNPACK tells, so that the events can be aligned."""
    exported = torch.export.export(Net().eval(), (torch.ones(256, 64),))
    partitioner = [XnnpackPartitioner(heavy_only=False)]
    finished = to_edge_transform_and_lower(exported, partitioner=partitioner).to_executorch()
    pte = es.read_pte(finished.buffer)
    (row,) = Method(pte, pte.program.execution_plan[0]).instructions()
    ids = sorted(row["ids"], key=lambda name: int(name.rpartition("@")[2]))
    told = [str(event.delegate_debug_id_str) for event in record(finished.buffer, True)[:-2]]
    assert [name.partition(" @")[0] for name in ids] == [name.split(" (")[0] for name in told]
    origins = [row["inner"][handle] for name in ids for handle in row["ids"][name]]
    assert [origin.get("module", "") for origin in origins] == ["one", "", "two", ""]
    assert {origin["source"].partition(":")[0] for origin in origins} == {"test_tracing.py"}
