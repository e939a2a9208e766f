# SPDX-License-Identifier: BSD-3-Clause
"""A method's random numbers begin with loading and with each seed, and are its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from etx_runtime import Runtime
from programs import drawing, loop


def test_loading_and_seeding_begin_again(runtime: Runtime) -> None:
    program = runtime.load_program(loop(1, drawing()))
    one, other = program.load_method("draw"), program.load_method("draw")
    assert [one.execute([]) for _ in range(2)] == [[0, 1], [2, 3]]
    assert other.execute([]) == [0, 1]
    one.seed(4)
    assert one.execute([]) == [4000, 4001]
    assert other.execute([]) == [2, 3]
    one.reset_state()
    assert one.execute([]) == [4002, 4003]
    one.seed(4)
    assert one.execute([]) == [4000, 4001]


def test_seeds_are_64_bits(runtime: Runtime) -> None:
    method = runtime.load_program(loop(1, drawing())).load_method("draw")
    method.seed(2**64 - 1)
    assert method.execute([]) == [-1000, -999]
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match=f"expected 0 to .* got {seed}"):
            method.seed(seed)
    assert method.execute([]) == [-998, -997]


def test_the_command_seeds_the_method(
    runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from etx_schema.cli import main

    (tmp_path / "draw.pte").write_bytes(loop(1, drawing()))
    options = ["run", str(tmp_path / "draw.pte"), "--method", "draw", "--json"]
    for given, first in (([], 0), (["--seed", "3"], 3000)):
        assert main([*options, *given]) == 0
        outputs = json.loads(capsys.readouterr().out)["outputs"]
        assert [row["value"] for row in outputs] == [first, first + 1]
