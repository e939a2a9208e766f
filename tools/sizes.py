# SPDX-License-Identifier: BSD-3-Clause
"""Prints the size of each wheel in a folder and of packages as installed."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path


def installed_bytes(name: str) -> int:
    """Return the unpacked size of a distribution, without the bytecode of this interpreter."""
    files = metadata.files(name) or []
    return sum(Path(f.locate()).stat().st_size for f in files if f.suffix != ".pyc")


def main(folder: str, *names: str) -> int:
    for wheel in sorted(Path(folder).glob("*.whl")):
        print(f"{wheel.stat().st_size / 1000:10.1f} kB  {wheel.name}")
    total = 0
    for name in names:
        total += installed_bytes(name)
        print(f"{installed_bytes(name) / 1000:10.1f} kB  {name}, installed")
    print(f"{total / 1000:10.1f} kB  device installation")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
