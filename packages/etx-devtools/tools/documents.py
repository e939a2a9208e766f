#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write docs/devtools-json.md: what `--json` of each command of etx-devtools prints.

With --check, nothing is written: exit 1 if the page is stale.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from etx_devtools.documents import FIELDS

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


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        print(f"{PAGE} is stale: run python3 noxfile.py -t gen", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
