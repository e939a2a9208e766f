# SPDX-License-Identifier: BSD-3-Clause
"""What scripts share that write committed files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

__all__ = ["write_or_check"]

SHOWN = 20


def write_or_check(about: str | None, files: Mapping[Path, str]) -> int:
    """Write texts, or with --check compare them with the files: 1 where one is stale."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if not parser.parse_args().check:
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = 0
    for path, text in files.items():
        have = path.read_text(encoding="utf-8")
        if have != text:
            stale = 1
            changed = sorted({*text.splitlines()} ^ {*have.splitlines()})
            said = f"{path} is stale: run python3 noxfile.py -t gen"
            print(said, *islice(changed, SHOWN), sep="\n", file=sys.stderr)
    return stale
