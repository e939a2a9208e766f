# SPDX-License-Identifier: BSD-3-Clause
"""What each pass of the compiler does to the model set: writes ``docs/passes-measured.md``.

Each model is lowered with the whole pipeline, then once without each pass. A cell says how many
operators the program has more without the pass, and how many kilobytes of constants.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "interop"))

from etx_exir.ir.constants import Constants
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.lower.copy_program import copy_program
from etx_exir.lower.decompose import decompose
from etx_exir.lower.lower import run_passes
from etx_exir.lower.verify import Dialect, verify
from etx_exir.passes import PIPELINE, Pass
from modelset import BUILDERS

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = ("chain", "vit_b_16")
HEAD = """# What the passes remove

Each model of the interop set, lowered with all [passes](passes.md) and without one: operators that
the program has more, and with `+` the kilobytes of constants that it stores more. *needed* means
that the program is not a valid Edge program without the pass. A pass without an entry does nothing
for these models; `tests/passes/test_every_pass_matters.py` holds a program that it changes.
Written by `python3 noxfile.py -s passes`.

{table}
"""


def operators(program: torch.export.ExportedProgram) -> int:
    """Count the operators of all graphs; reading one of several results is none."""
    return sum(
        node.op == "call_function" and "getitem" not in str(node.target)
        for module in graph_modules(program.graph_module)
        for node in module.graph.nodes
    )


def stored(program: torch.export.ExportedProgram) -> int:
    """Return the bytes of constants, each once."""
    return sum({t.data_ptr(): t.nbytes for _, t in Constants(program).items()}.values())


def measure(program: torch.export.ExportedProgram, passes: Iterable[Pass]) -> tuple[int, int]:
    """Lower a copy of a decomposed program; return its operators and bytes."""
    result = copy_program(program)
    run_passes(result, passes)
    verify(result, Dialect.EDGE)
    return operators(result), stored(result)


def cell(program: torch.export.ExportedProgram, kind: type[Pass], full: tuple[int, int]) -> str:
    """Return what the program has more without passes of `kind`."""
    try:
        count, size = measure(program, (p for p in PIPELINE if type(p) is not kind))
    except Exception:
        return "needed"
    more, kilobytes = count - full[0], (size - full[1]) / 1000
    texts = [str(more) if more else "", f"{kilobytes:+.1f}" if abs(kilobytes) >= 0.05 else ""]
    return " ".join(text for text in texts if text)


def column(build: Callable[[], Any], kinds: list[type[Pass]]) -> list[str]:
    """Return the cells of one model."""
    built = build()
    exported = torch.export.export(built.module, built.example, dynamic_shapes=built.dynamic_shapes)
    program = decompose(exported)
    full = measure(program, PIPELINE)
    return [f"{operators(program)} → {full[0]}", *(cell(program, kind, full) for kind in kinds)]


def main() -> None:
    """Lower all models and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=[n for n in BUILDERS if n not in LEFT_OUT])
    names = parser.parse_args().models
    kinds = list(dict.fromkeys(type(item) for item in PIPELINE))
    columns = []
    for name in names:
        columns.append(column(BUILDERS[name], kinds))
        print(name, columns[-1], flush=True)
    labels = ["operators", *(f"`{kind.__module__.rsplit('.', 1)[-1]}`" for kind in kinds)]
    rows = [f"| | {' | '.join(names)} |", "| --- " * (len(names) + 1) + "|"]
    for index, label in enumerate(labels):
        cells = [c[index] for c in columns]
        if any(cells):
            rows.append(f"| {label} | {' | '.join(cells)} |")
    page = HEAD.format(table="\n".join(rows))
    (ROOT / "docs" / "passes-measured.md").write_text(page)


if __name__ == "__main__":
    main()
