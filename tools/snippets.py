# SPDX-License-Identifier: BSD-3-Clause
"""Runs the fenced blocks of a page, in order, in an empty folder: `python tools/snippets.py PAGE`.

    ```python    runs in one process with the page's earlier Python blocks
    ```console   each line that begins with `$ ` runs in a shell; what follows is what it prints,
                 where `...` stands for anything
    any block whose first line is `# file: NAME` or `// file: NAME` is written to that file

A comment `<!-- file: NAME = PATH -->` copies PATH, seen from the page, into the folder first.
Other blocks (```sh, ```text) are shown only. The interpreter is the one that runs this script.

`python tools/snippets.py --serve MODULE...` imports these modules, then forks for each page that a
line of standard input names, and for each `etx` of it.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

FENCE = re.compile(r"^( *)```([a-z+]*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
COPY = re.compile(r"^<!-- file: (\S+) = (\S+) -->", re.MULTILINE)
FILE = re.compile(r"^(?:#|//|/\*) file: (\S+)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text and first line in the page."""

    language: str
    text: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    for match in FENCE.finditer(page):
        indent = len(match[1])
        text = "".join(line[indent:] for line in match[3].splitlines(keepends=True))
        yield Block(match[2], text, page.count("\n", 0, match.start(3)) + 1)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command with the output that is to follow it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        count = 1
        while lines[count - 1].rstrip().endswith("\\"):
            count += 1
        yield "".join(lines[:count]), "".join(lines[count:])


def matches(expected: str, printed: str) -> bool:
    """Compare line by line without trailing spaces; `...` matches anything, over lines too."""
    shown = "\n".join(line.rstrip() for line in expected.strip().splitlines())
    got = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    pattern = ".*".join(re.escape(part) for part in shown.split("..."))
    return re.fullmatch(pattern, got, re.DOTALL) is not None


Etx = Callable[[list[str], str, str], int]
"""Runs the command's words in a folder, output into a file, and returns the exit code."""


def run_console(block: Block, env: dict[str, str], etx: Etx | None = None) -> None:
    for command, expected in commands(block.text):
        with tempfile.NamedTemporaryFile("r", errors="replace") as out:
            words = etx_words(command) if etx else None
            if etx and words is not None:
                code = etx(words, os.getcwd(), out.name)
            else:
                with open(out.name, "a") as stream:
                    code = subprocess.call(
                        command,
                        shell=True,
                        env=env,
                        stdin=subprocess.DEVNULL,
                        stdout=stream,
                        stderr=stream,
                    )
            printed = out.read()
        if code:
            raise AssertionError(f"$ {command}{printed}exit code {code}")
        if expected.strip() and not matches(expected, printed):
            raise AssertionError(f"$ {command}printed\n{printed}instead of\n{expected}")


def etx_words(command: str) -> list[str] | None:
    """Return the words of an `etx` command, None of one that is for a shell."""
    plain = command.startswith("etx ") and not re.search(r"[^\w\s.,:=/@+-]", command)
    return shlex.split(command)[1:] if plain else None


def run_etx(words: list[str], folder: str) -> int:
    """Run the console script `etx` in this process, whose it is."""
    script = str(Path(sys.executable).with_name("etx"))
    os.chdir(folder)
    variables = environment()
    os.environ.clear()
    os.environ.update(variables)
    sys.argv, sys.path[0] = [script, *words], str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")
    return 0


def environment() -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"
    return env | {"COLUMNS": "100", "NO_COLOR": "1"}


def run_page(page: Path, etx: Etx | None = None) -> int:
    """Run a page's blocks in the current folder and return how many ran."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    sys.path.insert(0, os.getcwd())
    for name, source in COPY.findall(page.read_text()):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page.parent / source, name)
    ran = 0
    for block in blocks(page.read_text()):
        try:
            named = FILE.match(block.text)
            if named:
                Path(named[1]).write_text(block.text)
            elif block.language == "python":
                code = "\n" * (block.line - 1) + block.text
                exec(compile(code, str(page), "exec"), namespace)
            elif block.language == "console":
                run_console(block, environment(), etx)
            else:
                continue
        except BaseException as error:
            raise AssertionError(f"{page}, the block at line {block.line} fails") from error
        ran += 1
    return ran


def run_pages(pages: list[str], etx: Etx | None = None) -> int:
    failed = 0
    for page in (Path(name).resolve() for name in pages):
        with tempfile.TemporaryDirectory(prefix="etx-snippets-") as folder:
            back = Path.cwd()
            os.chdir(folder)
            try:
                print(f"{page.name}: {run_page(page, etx)} blocks ran", flush=True)
            except AssertionError:
                traceback.print_exc()
                failed += 1
            finally:
                os.chdir(back)
    return 1 if failed else 0


def answer(orders: TextIO, codes: TextIO, work: Callable[..., int]) -> None:
    """Fork for each line, a JSON list of what the work is given and a file for what it prints, and
    answer with its exit code; a child ends as any Python does."""
    while line := orders.readline():
        *given, output = json.loads(line)
        child = os.fork()
        if not child:
            stream = os.open(output, os.O_WRONLY | os.O_APPEND)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(stream, 1)
            os.dup2(stream, 2)
            sys.exit(work(*given))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=codes, flush=True)


def serve(modules: list[str]) -> int:
    """Answer orders for pages; another process, forked before any page ran, those for `etx`."""
    for module in modules:
        importlib.import_module(module)
    (orders, order), (codes, code) = os.pipe(), os.pipe()
    if not os.fork():
        os.close(order)
        answer(os.fdopen(orders), os.fdopen(code, "w"), run_etx)
        return 0
    os.close(orders)
    ordering, answers = os.fdopen(order, "w"), os.fdopen(codes)

    def etx(words: list[str], folder: str, output: str) -> int:
        print(json.dumps([words, folder, output]), file=ordering, flush=True)
        return int(answers.readline())

    answer(sys.stdin, sys.stdout, lambda pages: run_pages(pages, etx))
    ordering.close()
    os.wait()
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        sys.exit(serve(sys.argv[2:]))
    sys.exit(run_pages(sys.argv[1:]))
