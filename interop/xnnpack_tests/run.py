# SPDX-License-Identifier: BSD-3-Clause
"""Run ExecuTorch's XNNPACK tests, as they lie in its wheel, on ETX: `run.py SITE-PACKAGES`."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "exporter_tests"))

from files import FILES, ROOT, use_seeded_weights  # noqa: E402
from names import names  # noqa: E402
from suite import Suite, main  # noqa: E402

if __name__ == "__main__":
    use_seeded_weights()
    suite = Suite(ROOT, FILES, HERE / "not_applicable.json", names)
    sys.exit(main(suite, sys.argv[1:]))
