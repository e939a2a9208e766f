# SPDX-License-Identifier: BSD-3-Clause
"""Run the same tests on ExecuTorch itself, where it is installed: `theirs.py JSON [FILE...]`.

Writes what became of each test, as run.py --json does.
"""

from __future__ import annotations

import io
import json
import logging
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "exporter_tests"))

from files import FILES, ROOT, use_seeded_weights  # noqa: E402
from running import run_file  # noqa: E402


def main(output: Path, files: list[str]) -> None:
    """Run and write."""
    use_seeded_weights()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    results: dict[str, str] = {}
    for name in files:
        with redirect_stdout(io.StringIO()):
            results |= run_file(ROOT, name)
        own = [why for test, why in results.items() if test.startswith(f"{name}.")]
        print(f"{sum(not why for why in own):4d} of {len(own):4d}  {name}", flush=True)
        output.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(FILES))
