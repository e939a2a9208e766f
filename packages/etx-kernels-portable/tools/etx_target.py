#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write src/etx_kernels_portable/etx.json from the kernels of the installed plugin.

With --check, nothing is written: exit 1 if it is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from etx_kernels_portable.target import main

OUTPUT = Path(__file__).parent.parent / "src" / "etx_kernels_portable" / "etx.json"

if __name__ == "__main__":
    sys.exit(main(["--output", str(OUTPUT), *sys.argv[1:]]))
