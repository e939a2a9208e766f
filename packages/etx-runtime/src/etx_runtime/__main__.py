# SPDX-License-Identifier: BSD-3-Clause
"""Print where things lie, for builds: ``python -m etx_runtime --cmake-dir``."""

from __future__ import annotations

import argparse
from pathlib import Path

from etx_runtime import plugins


def main() -> None:
    """Print what is asked for, one path a line."""
    parser = argparse.ArgumentParser(prog="python -m etx_runtime", description=main.__doc__)
    parser.add_argument(
        "--cmake-dir", action="store_true", help="the folder for -Detx_runtime_DIR="
    )
    parser.add_argument("--plugins", action="store_true", help="libraries of installed kernels")
    chosen = parser.parse_args()
    if not (chosen.cmake_dir or chosen.plugins):
        parser.error("expected --cmake-dir or --plugins")
    if chosen.cmake_dir:
        print(Path(__file__).parent / "cmake")
    if chosen.plugins:
        plugins.load_installed()
        print(*plugins.loaded_plugins(), sep="\n")


if __name__ == "__main__":
    main()
