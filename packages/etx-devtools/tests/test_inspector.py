# SPDX-License-Identifier: BSD-3-Clause
"""The Inspector, cell by cell as ExecuTorch's on its dumps and on ours."""

from __future__ import annotations

import io
import json
import operator
import subprocess
import sys
from pathlib import Path
from typing import Any

import etx_devtools
import numpy as np
import pytest
import torch
from etx_devtools.etdump import Run, Span
from etx_devtools.inspector import Inspector, TimeScale
from etx_devtools.inspector.blocks import blocks_of
from etx_exir import to_edge
from etx_runtime import Recorder, Runtime
from etx_schema import EtxError

DATA = Path(__file__).parent / "data" / "etdump"
TABLES = json.loads((DATA / "executorch_tables.json").read_text())


def table(name: str) -> list[dict[str, Any]]:
    buffer = DATA / f"{name}.bin"
    given = buffer if buffer.exists() else None
    rows = Inspector(DATA / f"{name}.etdp", debug_buffer_path=given)._rows()
    for row in rows:
        row["debug_data"] = [list(value.shape) for value in row["debug_data"]]
    return rows


@pytest.mark.parametrize("name", ["executorch_portable", "executorch_xnnpack", "etx_portable"])
def test_cell_by_cell(name: str) -> None:
    rows, expected = table(name), TABLES[name]["rows"]
    assert [list(row) for row in rows] == [TABLES[name]["columns"]] * len(expected)
    for row, other in zip(rows, expected, strict=True):
        for column, cell in row.items():
            if column == "debug_data" and name == "executorch_xnnpack":
                assert cell == []  # without a debug buffer theirs has tensors that nobody recorded
            elif isinstance(cell, float) or column == "raw":
                assert cell == pytest.approx(other[column], rel=1e-12, abs=2e-9), column
            else:
                assert cell == other[column], column


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Linear(4, 4)
        self.two = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(torch.sin(self.one(x)))

    def backwards(self, x: torch.Tensor) -> torch.Tensor:
        return self.one(self.two(x))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, Path]:
    """Two methods, executed with different inputs."""
    net, x = Net().eval(), torch.ones(2, 4)
    programs = {"forward": torch.export.export(net, (x,))}
    net.forward = net.backwards  # type: ignore[method-assign]
    programs["other"] = torch.export.export(net, (x,))
    content = bytes(to_edge(programs).to_executorch().buffer)
    recorder = Recorder("all")
    program = Runtime.get().load_program(content)
    for name in ("forward", "other"):
        method = program.load_method(name, recorder=recorder)
        for number in (1, 2, 3):
            method.trace([np.full((2, 4), number, np.float32)], recorder)
    path = tmp_path_factory.mktemp("values") / "a.bin"
    path.write_bytes(recorder.debug_buffer())
    return content, recorder.etdump(), path


def test_methods_and_inputs_do_not_matter(recorded: tuple[bytes, bytes, Path]) -> None:
    content, dump, values = recorded
    inspector = Inspector(etdump_data=dump, program=content, debug_buffer_path=values)
    blocks = inspector.event_blocks
    assert [(block.name, block.method) for block in blocks] == [
        ("Default", "forward"),
        ("Execute", "forward"),
        ("Default_1", "other"),
        ("Execute_1", "other"),
    ]
    calls = [e for e in blocks[1].events if e.name == "OPERATOR_CALL"]
    assert [e.op_types for e in calls] == [
        ["aten.linear.default"],
        ["aten.sin.default"],
        ["aten.linear.default"],
        ["aten.relu.default"],
    ]
    assert all(len(event.perf_data.raw) == 3 for event in calls)
    assert all(next(iter(e.stack_traces.values())).startswith("test_insp") for e in calls)
    assert [name for e in calls for row in e.module_hierarchy.values() for name in row] == [
        "one",
        "two.0",
        "two.1",
    ]
    parts = sum(inspector.find_total_for_module(name) for name in ("two.0", "two.1"))
    assert parts > 0
    assert inspector.find_total_for_module("two") == pytest.approx(parts)
    found = inspector.get_op_list("Execute")
    assert {name: len(events) for name, events in found.items()} == {
        "aten.linear.default": 4,
        "aten.sin.default": 2,
        "aten.relu.default": 2,
    }
    with pytest.raises(EtxError, match="no event block 'None'"):
        inspector.get_op_list("None")


def test_tables(recorded: tuple[bytes, bytes, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    content, dump, _ = recorded
    inspector = Inspector(etdump_data=dump, program=content, target_time_scale=TimeScale.US)
    text = io.StringIO()
    monkeypatch.setenv("COLUMNS", "120")
    inspector.print_data_tabular(text)
    lines = text.getvalue().splitlines()
    assert len(lines) == 1 + sum(len(block.events) for block in inspector.event_blocks)
    assert max(map(len, lines)) <= 120
    assert "p10 (us)" in lines[0]
    text = io.StringIO()
    inspector.save_data_to_tsv(text)
    first, *rest = text.getvalue().splitlines()
    assert first.split("\t")[1:4] == ["event_block_name", "event_name", "p10 (us)"]
    assert len(rest) == len(lines) - 1
    assert {line.count("\t") for line in (first, *rest)} == {12}


def test_pandas_is_named_where_it_is_missing(
    recorded: tuple[bytes, bytes, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(EtxError, match="pandas is not installed"):
        Inspector(etdump_data=recorded[1]).to_dataframe()


def test_arguments() -> None:
    path = DATA / "etx_portable.etdp"
    with pytest.raises(ValueError, match="one of etdump_path and etdump_data"):
        Inspector()
    with pytest.raises(ValueError, match="both must be cycles"):
        Inspector(path, source_time_scale=TimeScale.CYCLES)
    cycles = Inspector(path, None, None, TimeScale.CYCLES, TimeScale.CYCLES)
    assert cycles.event_blocks[0].events[0].perf_data.raw[0] > 1000
    scaled = Inspector(
        DATA / "executorch_xnnpack.etdp", delegate_time_scale_converter=lambda name, time: time
    )
    raw = {event.name: event.perf_data.raw for event in scaled.event_blocks[1].events}
    assert raw["Fully Connected (NC, F32) GEMM #1"] == [4000, 0]


def test_a_clock_far_from_zero_loses_no_digits() -> None:
    """Nanoseconds since 1970 have more digits than a float: 256 of them would be one."""
    start = 1_790_000_000_123_456_789
    run = Run("Execute", spans=[Span("OPERATOR_CALL", 0, 0, start, start + 114_291)])
    (block,) = blocks_of([run], TimeScale.NS, TimeScale.NS, None)
    assert block.events[0].perf_data.raw == [114_291]


def test_import_is_light() -> None:
    code = "import sys, etx_devtools.inspector; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "pandas", "etx_runtime", "rich"} & set(out.stdout.split())


def test_importing_it_brings_neither_numpy_nor_torch() -> None:
    code = (
        "import sys, etx_devtools, etx_devtools.inspector, etx_devtools.profile.command\n"
        "print(*{'numpy', 'torch', 'pandas', 'rich'} & {*sys.modules})\n"
        "from etx_devtools import *\nassert sizes and BundledProgram and MethodTestCase"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    with pytest.raises(AttributeError, match="module 'etx_devtools' has no attribute 'other'"):
        operator.attrgetter("other")(etx_devtools)
