# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from pathlib import Path

import etx_backend_arm
import pytest
from etx_backend_arm.tosa import DType, Graph, Op, read_tosa
from etx_schema import ProgramError
from etx_schema.generate import main as generate

PACKAGE = Path(etx_backend_arm.__file__).parent


def test_generated_code_is_up_to_date() -> None:
    schema, out = PACKAGE / "fbs" / "tosa.fbs", PACKAGE / "_generated" / "tosa.py"
    assert generate([str(schema), str(out), "--check"]) == 0


def test_a_graph_reads_back_as_written() -> None:
    graph = Graph()
    graph.output(graph.clamp(graph.input("x", (2, 3), DType.FP32), -1.0, 2.0, "y", (2, 3)))
    (block,) = read_tosa(graph.serialize()).regions[0].blocks
    assert (block.inputs, block.outputs) == (["x"], ["y"])
    assert [operator.op for operator in block.operators] == [Op.CLAMP]


def test_other_bytes_are_refused_with_the_offset() -> None:
    with pytest.raises(ProgramError, match="TOSA"):
        read_tosa(b"\x08\0\0\0ET12" + bytes(16))
