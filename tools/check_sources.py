# SPDX-License-Identifier: BSD-3-Clause
"""Checks what no formatter does: sizes, licence lines, words, and names that no file may hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE_LIMIT = 600
FUNCTION_LIMIT = 80
PAGE_LIMIT = 200
PYTHON = {".py", ".pyi"}
NATIVE = {".c", ".h", ".cpp", ".def"}
LICENSED = PYTHON | NATIVE | {".cmake", ".fbs", ".sh"}
HOSTS = re.compile(
    r"https?://[^ ]*(pypi|pythonhosted|debian|npmjs|crates|download\.pytorch)\.(org|io)"
)
WORDS = (  # what is written, as a pattern; what an English reader expects
    (
        r"(?<![Tt]here )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|other\b|\w+er\b)",
        "is not a",
    ),
    (r"[a-z`*)] alone(?=[.,:;)](?:\s|$))", "only, before the word it is said of"),
    (r"\bbut for\b", "except"),
    (r"\banew\b", "again"),
    (r"\bat the (?:least|most)\b", "at least, at most"),
    (r"\bwanted\b", "expected, live, chosen"),
)
PROSE = PYTHON | NATIVE | {".md"}
MACHINE = re.compile(r"(^|[^A-Za-z0-9_.*])/(work|root|home/[a-z]+|tmp/[a-z]+)/")


def tracked() -> Iterator[Path]:
    """Yield the files git tracks or would, so that a new file is checked before its commit."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"]
    for name in subprocess.check_output(command, text=True).split("\0"):
        path = ROOT / name
        if name and path.is_file():
            yield path


def generated(path: Path) -> bool:
    return "_generated" in path.parts or path.suffix == ".pyi" or "golden" in path.parts


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def native_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield functions at namespace level: with this format they begin and end in column 0."""
    opened: tuple[str, int] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        other = re.match(
            r"(namespace|struct|class|enum|union|extern|template .*(struct|class)|#)", line
        )
        if opened is None and line.endswith("{") and line[:1].strip() and not other:
            opened = (line.split("(")[0], number)
        elif opened and line.startswith("}"):
            yield opened[0], opened[1], number - opened[1] + 1
            opened = None


def words(path: Path, lines: list[str]) -> Iterator[str]:
    """Yield the words of WORDS; what a release said stays as it was said."""
    if path.suffix not in PROSE or path.name in ("CHANGELOG.md", "check_sources.py"):
        return
    for number, line in enumerate(lines, 1):
        for pattern, better in WORDS:
            if found := re.search(pattern, line):
                name = path.relative_to(ROOT)
                yield f"{name}:{number}: {found[0].strip()!r}: write {better!r}"


def problems(path: Path) -> Iterator[str]:
    name = path.relative_to(ROOT)
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if HOSTS.search(line):
            yield f"{name}:{number}: names the host of a package registry"
        if MACHINE.search(line):
            yield f"{name}:{number}: names a path of one machine"
    if (
        path.suffix in LICENSED
        and lines
        and "SPDX-License-Identifier: BSD" not in "".join(lines[:3])
    ):
        yield f"{name}:1: begins without its SPDX line"
    if generated(path):
        return
    yield from words(path, lines)
    if path.suffix in PYTHON | NATIVE and len(lines) > FILE_LIMIT:
        yield f"{name}: {len(lines)} lines; split it: at most {FILE_LIMIT}"
    if name.parts[0] == "docs" and path.suffix == ".md" and len(lines) > PAGE_LIMIT:
        yield f"{name}: {len(lines)} lines; a page has at most {PAGE_LIMIT}"
    functions = python_functions(text) if path.suffix in PYTHON else ()
    if path.suffix in NATIVE:
        functions = native_functions(text)
    for function, number, length in functions:
        if length > FUNCTION_LIMIT:
            yield f"{name}:{number}: {function} has {length} lines, at most {FUNCTION_LIMIT}"


def main() -> int:
    found = [problem for path in tracked() for problem in problems(path)]
    print("\n".join(found) or "sources: sizes, licences and names are in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
