# SPDX-License-Identifier: BSD-3-Clause
"""Each command of the tools on files of the model set: float and quantized, kernels and XNNPACK.

usage: commands_on.py [--recipes float,int8,...] [MODEL...]

A command may say that a model cannot be quantized so; anything else than its exit code is an error.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from etx_schema.cli import main as etx
from modelset import build
from names import ROWS
from reference import leaves

RECIPES = ("float", "int8", "int8-dynamic", "int8-weight", "int4")
BACKENDS = ("", "xnnpack")
NET = """\
import sys

sys.path.insert(0, {here!r})
from modelset import build


def net():
    made = build({name!r})
    return made.module, tuple(made.example), made.dynamic_shapes
"""
COMMANDS = (
    "check FILE",
    "show FILE",
    "size FILE --by weight",
    "memory FILE -o memory.svg",
    "run FILE --input call.npz --etdump run.etdp --values all",
    "profile FILE --input call.npz --executions 3 --by instruction --trace trace.json",
    "profile FILE --etdump run.etdp --by module",
    "report FILE --etdump run.etdp -o page.html",
    "report FILE --run --eager net.py:net QUANTIZED --inputs call.npz -o page.html",
    "compare FILE --eager net.py:net QUANTIZED --inputs call.npz",
    "compare FILE --eager net.py:net QUANTIZED --inputs call.npz --etdump run.etdp --json",
    "bundle FILE --inputs call.npz -o tests.bpte",
    "verify tests.bpte --junit results.xml",
    "strip FILE -o small.pte",
    "diff FILE small.pte --run",
)
AGAINST_FLOAT = (
    "diff FLOAT FILE --run",
    "report FLOAT FILE -o both.html",
    "compare FILE --against FLOAT --inputs call.npz",
)
MAY_DIFFER = AGAINST_FLOAT[-1:]
"""Of a quantized file and a float one, rounding is an error of the first."""


def said(words: Sequence[str]) -> tuple[int, str]:
    """Return the exit code of a command and what it printed last, -1 with what it raised."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            code = etx(words)
        except SystemExit as stop:
            code = int(stop.code or 0)
        except Exception:
            code = -1
            text.write(traceback.format_exc())
    return code, text.getvalue()


def words_of(command: str, file: str, quantized: Sequence[str]) -> list[str]:
    """Return a command's words, with names put in."""
    named = {"FILE": [file], "FLOAT": ["float.pte"], "QUANTIZED": list(quantized)}
    return [word for part in command.split() for word in named.get(part, [part])]


def wrong_on(name: str, recipes: Sequence[str]) -> Iterator[str]:
    """Yield what goes wrong with a model, in the current folder."""
    built = build(name)
    Path("net.py").write_text(NET.format(here=str(Path(__file__).parent), name=name))
    np.savez("call.npz", *leaves(built.calls[0]))
    if "float" not in recipes:
        said(["compile", "net.py:net", "-o", "float.pte"])
    for recipe in recipes:
        quantized = [] if recipe == "float" else ["--quantize", recipe]
        quantized += ["--calibrate", "call.npz"] if recipe == "int8" else []
        for backend in BACKENDS:
            file = f"{backend}{recipe}.pte"
            words = ["compile", "net.py:net", "-o", file, *quantized]
            code, text = said([*words, *(["--backend", backend] if backend else [])])
            if code == 2 and quantized:
                print(f"{name} {recipe} {backend}: refused: {text.strip().splitlines()[-1]}")
                continue
            if code:
                yield f"{name} {recipe} {backend}: compile: {code} {text[-2000:]}"
                continue
            for command in (*COMMANDS, *(AGAINST_FLOAT if file != "float.pte" else ())):
                code, text = said(words_of(command, file, quantized))
                if code not in ((0, 1) if command in MAY_DIFFER else (0,)):
                    yield f"{name} {recipe} {backend}: {command}: {code} {text[-2000:]}"
            print(f"{name} {recipe} {backend}: ran", flush=True)


def main(words: list[str]) -> int:
    """Print what goes wrong; fail where anything does."""
    warnings.simplefilter("ignore")
    recipes: Sequence[str] = RECIPES
    if words[:1] == ["--recipes"]:
        recipes, words = words[1].split(","), words[2:]
    found = []
    for name in words or [item.name for item in ROWS.values() if not item.by_hand]:
        back = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            found += list(wrong_on(name, recipes))
            os.chdir(back)
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
