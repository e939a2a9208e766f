# SPDX-License-Identifier: BSD-3-Clause
"""Runs the fenced blocks of a page, in order, in an empty folder: `python tools/snippets.py PAGE`.

    ```python    runs in one process with the page's earlier Python blocks
    ```console   each line that begins with `$ ` runs in a shell; what follows is what it prints,
                 where `...` stands for anything
    any block whose first line is `# file: NAME` or `// file: NAME` is written to that file

A comment `<!-- file: NAME = PATH -->` copies PATH, seen from the page, into the folder first.
Other blocks (```sh, ```text) are shown only. The interpreter is the one that runs this script.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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


def run_console(block: Block, env: dict[str, str]) -> None:
    for command, expected in commands(block.text):
        done = subprocess.run(
            command,
            shell=True,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise AssertionError(f"$ {command}{done.stdout}exit code {done.returncode}")
        if expected.strip() and not matches(expected, done.stdout):
            raise AssertionError(f"$ {command}printed\n{done.stdout}instead of\n{expected}")


def environment() -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', '')}"
    return env | {"COLUMNS": "100", "NO_COLOR": "1"}


def run_page(page: Path) -> int:
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
                run_console(block, environment())
            else:
                continue
        except BaseException as error:
            raise AssertionError(f"{page}, the block at line {block.line} fails") from error
        ran += 1
    return ran


def main(pages: list[str]) -> int:
    failed = 0
    for page in (Path(name).resolve() for name in pages):
        with tempfile.TemporaryDirectory(prefix="etx-snippets-") as folder:
            back = Path.cwd()
            os.chdir(folder)
            try:
                print(f"{page.name}: {run_page(page)} blocks ran", flush=True)
            except AssertionError:
                traceback.print_exc()
                failed += 1
            finally:
                os.chdir(back)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
