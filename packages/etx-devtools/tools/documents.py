#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write docs/devtools-json.md: what `--json` of each command of etx-devtools prints.

With --check, nothing is written: exit 1 if the page is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from etx_devtools.documents import FIELDS

from generated import write_or_check

PAGE = Path(__file__).resolve().parents[3] / "docs" / "devtools-json.md"
AS_OUTPUTS = ("calls[].state{}.", "calls[].checks[].made.", "calls[].checks[].arrived.")
HEAD = """# JSON of the commands

What `etx COMMAND --json` of etx-devtools prints: `a.b` is in an object, `a[]` in a list, `a{}`
under a name of the file. `etx_devtools.documents.schema(command)` is the same as a JSON Schema,
which a test holds each command to. This page is written by `python3 noxfile.py -t gen`.
"""


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for command, fields in FIELDS.items():
        parts.append(f"\n## {command}\n\n| field | type | |\n| --- | --- | --- |\n")
        for path, types, meaning in fields:
            if path.startswith(AS_OUTPUTS):
                continue
            parts.append(f"| `{path}` | {types.replace('|', ' or ')} | {meaning} |\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, {PAGE: page()}))
