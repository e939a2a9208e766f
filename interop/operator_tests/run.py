# SPDX-License-Identifier: BSD-3-Clause
"""Run ExecuTorch's operator suite: `run.py SITE-PACKAGES --json FILE [--with xnnpack] [NAME...]`.

On ETX, or with `--peer`, where it is installed, on ExecuTorch. Writes what became of each function.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "exporter_tests"))

from calls import Runner, outcomes, stand_in  # noqa: E402


def xnnpack() -> Any:
    """Return the partitioner that takes all it can."""
    name = "executorch.backends.xnnpack.partition.xnnpack_partitioner"
    made = importlib.import_module(name).XnnpackPartitioner()
    if hasattr(made, "heavy_only"):
        made.heavy_only = False
    return made


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, help="the site-packages that ExecuTorch lies in")
    parser.add_argument("names", nargs="*", help="such as add, conv2d: files of the suite")
    parser.add_argument("--peer", action="store_true", help="run on ExecuTorch itself")
    parser.add_argument("--with", dest="delegate", choices=("xnnpack",), help="delegate to it")
    parser.add_argument("--json", type=Path, required=True, help="file to write")
    options = parser.parse_intermixed_args()
    if not options.peer:
        importlib.import_module("aliases").install(options.wheel)
    stand_in(options.wheel)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    make: Callable[[], Any] | None = xnnpack if options.delegate else None
    found, passed, total = {}, Counter[str](), Counter[str]()
    for name, why in outcomes(Runner(make), options.names):
        found[name] = why
        total[name.partition(".")[0]] += 1
        passed[name.partition(".")[0]] += not why
        print(f"{name}: {why or 'passes'}", flush=True)
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(f"{passed.total()} of {total.total()} pass")
    return 0


if __name__ == "__main__":
    sys.exit(main())
