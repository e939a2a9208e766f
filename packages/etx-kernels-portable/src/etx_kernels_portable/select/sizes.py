# SPDX-License-Identifier: BSD-3-Clause
"""What a linker keeps of a library of kernels, by source."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

from etx_schema.errors import EtxError

SYMBOL = "etx_plugin_etx_kernels_portable"
SECTION = re.compile(r"^ \.(\w+)[^\s]*\s+0x[0-9a-f]+\s+(0x[0-9a-f]+)\s+\S*\(([^)]+)\)( |$)")
KINDS = {"text": "code", "rodata": "constants", "data": "constants"}


def sizes(library: Path, compiler: str) -> dict[str, dict[str, int]]:
    """Return bytes of code and constants by source of a static library, unused sections left out.

    A linker is asked for what hangs on the plugin's table. Errors: EtxError when it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "map")
        command = [
            *shlex.split(compiler),
            "-nostdlib",
            "-r",
            f"-Wl,--gc-sections,-u,{SYMBOL},-e,{SYMBOL}",
        ]
        command += [f"-Wl,-Map={table}", "-o", os.path.join(folder, "linked.o"), str(library)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            raise EtxError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
        return read_map(Path(table).read_text(encoding="utf-8", errors="replace"))


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
