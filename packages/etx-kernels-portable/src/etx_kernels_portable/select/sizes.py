# SPDX-License-Identifier: BSD-3-Clause
"""What a linker keeps of a library of kernels, by source and by operator."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from etx_schema.errors import EtxError
from etx_schema.stopping import run_child, scratch_folder

from etx_kernels_portable.select.elf import Section, read_sections, text_at

SYMBOL = "etx_plugin_etx_kernels_portable"
SECTION = re.compile(r"^ \.(\w+)[^\s]*\s+0x[0-9a-f]+\s+(0x[0-9a-f]+)\s+\S*\(([^)]+)\)( |$)")
KERNEL = "run_selected"
KINDS = {"text": "code", "rodata": "constants", "data": "constants"}


@dataclass(frozen=True)
class Sizes:
    """Bytes of a static library that are left when unused sections are left out."""

    sources: dict[str, dict[str, int]]
    """By source: {"code": bytes, "constants": …}."""
    operators: dict[str, dict[str, int]]
    """By operator: {"own": bytes that no other needs, "all": what a library of it alone has}."""
    shared: int
    """Bytes that several operators need."""
    rest: int
    """Bytes of tables of kernels and texts."""

    @property
    def total(self) -> int:
        """Return all bytes."""
        return self.shared + self.rest + sum(row["own"] for row in self.operators.values())


def sizes(library: Path, compiler: str) -> Sizes:
    """Return what is kept of a static library.

    A linker is asked for what hangs on the plugin's table. Errors: EtxError when it fails.
    """
    with scratch_folder() as folder:
        table, linked = os.path.join(folder, "map"), os.path.join(folder, "linked.o")
        options = f"--gc-sections,--unique,-u,{SYMBOL},-e,{SYMBOL},-Map={table}"
        command = [*shlex.split(compiler), "-nostdlib", "-r", f"-Wl,{options}"]
        command += ["-o", linked, str(library)]
        done = run_child(command)
        if done.returncode != 0:
            raise EtxError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
        sources = read_map(Path(table).read_text(encoding="utf-8", errors="replace"))
        return Sizes(sources, *by_operator(read_sections(Path(linked).read_bytes())))


def by_operator(sections: dict[int, Section]) -> tuple[dict[str, dict[str, int]], int, int]:
    """Return bytes by operator, those that several share, and those of tables."""
    bytes_of = {i: len(s.data) for i, s in sections.items() if s.name.split(".")[1] in KINDS}
    reached = {
        name: _reachable(sections, start) & bytes_of.keys()
        for name, start in _kernels(sections).items()
    }
    users = Counter(i for found in reached.values() for i in found)
    rows = {
        name: {
            "own": sum(bytes_of[i] for i in found if users[i] == 1),
            "all": sum(bytes_of[i] for i in found),
        }
        for name, found in reached.items()
    }
    shared = sum(bytes_of[i] for i, count in users.items() if count > 1)
    return rows, shared, sum(size for i, size in bytes_of.items() if i not in users)


def _kernels(sections: dict[int, Section]) -> dict[str, int]:
    """Return the section of each operator's kernel: rows hold a name, then the kernel."""
    found = {}
    for section in sections.values():
        before = None
        if KINDS.get(section.name.split(".")[1]) != "constants":
            continue
        for each in sorted(section.references, key=lambda each: each.at):
            is_kernel = any(KERNEL in name for name in sections[each.section].symbols)
            if is_kernel and before is not None:
                found[text_at(sections[before.section].data, before.offset)] = each.section
            before = each
    return found


def _reachable(sections: dict[int, Section], start: int) -> set[int]:
    found, waiting = {start}, [start]
    while waiting:
        for each in sections[waiting.pop()].references:
            if each.section not in found:
                found.add(each.section)
                waiting.append(each.section)
    return found


def read_map(text: str) -> dict[str, dict[str, int]]:
    """Return what a GNU linker's map says was kept, by source: {"code": bytes, "constants": …}."""
    kept = text.partition("Linker script and memory map")[2]
    joined = re.sub(r"\n {16,}(0x)", r" \1", kept)
    found: dict[str, dict[str, int]] = defaultdict(lambda: {"code": 0, "constants": 0})
    for line in joined.splitlines():
        if match := SECTION.match(line):
            kind = KINDS.get(match[1])
            source = re.sub(r"\.(o|obj)$", "", match[3])
            if kind is not None:
                found[source][kind] += int(match[2], 16)
    return {source: row for source, row in found.items() if any(row.values())}
