# SPDX-License-Identifier: BSD-3-Clause
"""Plant a wrong lowering in the backend, and find its node by bisection and by what it computes."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
from etx_devtools.compare import compare
from etx_devtools.compare.bisect import bisect, compile_part
from etx_devtools.compare.inside import compile_tapped
from etx_schema import write_pte
from etx_schema.cli import main
from models import models
from pointwise_aot import PointwisePartitioner
from pointwise_aot.table import TABLE

aten = torch.ops.aten
FAULTS = [
    ("chain", aten.relu.default, aten.abs.default),
    ("chain", aten.maximum.default, aten.minimum.default),
    ("every", aten.tanh.default, aten.sigmoid.default),
]
BACKEND = "pointwise_aot:PointwisePartitioner"


def chain() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """Return what `--eager find_fault.py:chain` compares with."""
    module, calls, _ = models()["chain"]
    return module, calls[0]


@contextlib.contextmanager
def lowered_as(planted: torch._ops.OpOverload, wrong: torch._ops.OpOverload) -> Iterator[None]:
    """Let the backend lower one operator as if it were another."""
    right = TABLE[planted]
    TABLE[planted] = TABLE[wrong]
    try:
        yield
    finally:
        TABLE[planted] = right


def find(name: str, planted: torch._ops.OpOverload, wrong: torch._ops.OpOverload) -> bool:
    """Lower `planted` as `wrong` in one model; print what was found, return whether it is that."""
    module, calls, shapes = models()[name]
    program = torch.export.export(module, calls[0], dynamic_shapes=shapes)
    with lowered_as(planted, wrong):
        partitioner = PointwisePartitioner()
        whole, _ = compile_part(program, partitioner, 0)
        border = compare(whole, program, calls[:1]).first
        found = bisect(
            program, partitioner, lambda pte: compare(pte, program, calls[:1]), wrong=True
        )
        tapped = compare(compile_tapped(program, [partitioner]), program, calls[:1]).first
    inside = "nothing" if tapped is None else tapped[1].value
    print(
        f"{name}: {found.operator} is wrong, {found.compilations} compilations among "
        f"{found.nodes} nodes; tapped: {inside}"
    )
    is_found = found.operator == str(planted) and inside == found.name
    return is_found and border is not None and 2 ** (found.compilations - 1) <= found.nodes


def command(*words: str) -> dict:
    """Return the document of `etx compare` on the wrong file, which exits with 1."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = main(["compare", "wrong.pte", "--eager", "find_fault.py:chain", "--json", *words])
    assert code == 1, text.getvalue()
    return json.loads(text.getvalue())


def replay(log: Path) -> bool:
    """Search by the command, twice: what the log of the first has is not compiled again."""
    with lowered_as(aten.relu.default, aten.abs.default):
        program = torch.export.export(*chain())
        write_pte(compile_part(program, PointwisePartitioner(), 0)[0], "wrong.pte")
        searched = ["--bisect", BACKEND, "--bisect-log", str(log)]
        first, again = (command(*searched)["bisection"] for _ in range(2))
        inside = command("--inside", BACKEND)["first"]
    made = first["compilations"], again["compilations"]
    print(f"by the command: {first['operator']}, {made[0]} compilations, replayed {made[1]}")
    print(f"inside: {inside['value']} {inside['source']}")
    same = [{k: v for k, v in one.items() if k != "compilations"} for one in (first, again)]
    is_found = first["operator"] == "aten.relu.default" and inside["value"] == first["name"]
    return is_found and same[0] == same[1] and made[1] == 0 < made[0]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    results = [find(*fault) for fault in FAULTS]
    with tempfile.TemporaryDirectory() as folder:
        results.append(replay(Path(folder) / "steps.json"))
    sys.exit(not all(results))
