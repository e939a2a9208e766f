# SPDX-License-Identifier: BSD-3-Clause
"""ETRecords: ExecuTorch's and ours, in the Inspector."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from etx_devtools.inspector import Inspector
from etx_exir import to_edge_transform_and_lower
from etx_exir.etrecord import parse_etrecord
from etx_runtime import Recorder, Runtime
from etx_schema import EtxError

DATA = Path(__file__).parent / "data" / "etrecord"
EXPECTED = json.loads((DATA / "recorded.json").read_text())


def theirs(**options: Any) -> Inspector:
    return Inspector(
        DATA / "recorded.etdp",
        etrecord=DATA / "executorch.etrecord",
        debug_buffer_path=DATA / "recorded.bin",
        **options,
    )


def test_cell_by_cell() -> None:
    found = [{key: row[key] for key in EXPECTED["rows"][0]} for row in theirs()._rows()]
    assert json.loads(json.dumps(found)) == EXPECTED["rows"]


def test_gaps_as_theirs() -> None:
    rows = theirs().numeric_gaps("MSE")
    assert len(rows) == len(EXPECTED["gaps"]) == 5
    for row, other in zip(rows, EXPECTED["gaps"], strict=True):
        assert list(row["aot_debug_handle"]) == other["aot_debug_handle"]
        assert (row["aot_ops"], row["runtime_ops"]) == (other["aot_ops"], other["runtime_ops"])
        assert row["gap"] == pytest.approx(other["gap"], rel=1e-3, abs=1e-14)
    edge = theirs().numeric_gaps(lambda a, b: (a - b).abs().max(), "edge_dialect_exported_program")
    assert max(row["gap"][0] for row in edge) < 1e-6


def test_programs_of_a_record() -> None:
    inspector = theirs()
    inputs = parse_etrecord(DATA / "executorch.etrecord")._representative_inputs[0]
    exported = inspector.get_exported_program("exported_program").module()
    edge = inspector.get_exported_program().module()
    torch.testing.assert_close(exported(*inputs), edge(*inputs))
    with pytest.raises(EtxError, match="no program 'other'"):
        inspector.get_exported_program("other")
    assert inspector.find_total_for_module("one") > 0


class Folded(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
        self.norm[1].running_mean.uniform_(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.hardswish(self.norm(x) * 2)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("record")
    inputs = (torch.randn(1, 1, 5, 5),)
    program = torch.export.export(Folded().eval(), inputs)
    finished = to_edge_transform_and_lower(program, generate_etrecord=True).to_executorch()
    finished.save(folder / "net.pte")
    record = finished.get_etrecord()
    record.update_representative_inputs([inputs])
    record.save(folder / "net.etrecord")
    method = Runtime.get().load_program(folder / "net.pte").load_method("forward")
    recorder = Recorder("all")
    method.trace([x.numpy() for x in inputs], recorder)
    recorder.save(folder / "net.etdp", folder / "net.bin")
    return folder


def test_a_fused_operator_has_the_value_of_the_last_it_took_in(ours: Path) -> None:
    inspector = Inspector(
        ours / "net.etdp",
        etrecord=ours / "net.etrecord",
        debug_buffer_path=ours / "net.bin",
    )
    rows = inspector.numeric_gaps("L1")
    assert [row["aot_ops"][-1] for row in rows] == ["batch_norm", "mul", "hardswish"]
    assert max(row["gap"][0] for row in rows) < 1e-5


def test_a_record_without_inputs_or_values(ours: Path) -> None:
    record = parse_etrecord(ours / "net.etrecord")
    with pytest.raises(EtxError, match="debug_buffer_path"):
        Inspector(ours / "net.etdp", etrecord=record).numeric_gaps()
    record._representative_inputs = None
    inspector = Inspector(ours / "net.etdp", etrecord=record, debug_buffer_path=ours / "net.bin")
    with pytest.raises(EtxError, match="update_representative_inputs"):
        inspector.numeric_gaps()
    record.update_representative_inputs([torch.randn(1, 1, 5, 5)])
    with pytest.raises(EtxError, match="no metric 'far'"):
        Inspector(
            ours / "net.etdp", etrecord=record, debug_buffer_path=ours / "net.bin"
        ).numeric_gaps("far")


def test_what_is_no_record(ours: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a", "b")
    whole = (DATA / "executorch.etrecord").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    places = [at for at in range(len(whole)) if whole[at : at + 4] == b"PK\x01\x02"]
    for name, fields in (("newer", {6: b"\xff"}), ("locked", {8: b"\x01"})):
        changed = bytearray(whole)
        for at in places:
            for offset, value in fields.items():
                changed[at + offset : at + offset + 1] = value
        (tmp_path / name).write_bytes(changed)
    first = zipfile.ZipFile(DATA / "executorch.etrecord").getinfo("debug_handle_map")
    data = first.header_offset + 30 + len(first.filename)
    (tmp_path / "damaged").write_bytes(whole[:data] + b"\xff" * 8 + whole[data + 8 :])
    bad = [tmp_path / name for name in ("other.zip", "cut", "newer", "locked", "damaged")]
    for path in (*bad, ours / "net.pte"):
        with pytest.raises(EtxError, match="not an ETRecord"):
            Inspector(ours / "net.etdp", etrecord=path)
        with pytest.raises(EtxError, match="not an ETRecord"):
            parse_etrecord(path)
