# SPDX-License-Identifier: BSD-3-Clause
"""Run files that may be broken; a line of JSON for each: its path, what happened, the results.

usage: attempt.py {etx,executorch} FILE...

The name of a file up to its first dot says which inputs it gets. A file that takes longer than 20
seconds, the runtime's import apart, ends the process by a signal, as one does that crashes.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import signal
import sys
from pathlib import Path

import numpy as np
from run import RUNTIMES

LIMIT = 20
MODULES = {
    "etx": ["etx_runtime"],
    "executorch": ["executorch.kernels.quantized", "executorch.runtime"],
}
X = np.arange(24, dtype=np.float32)
INPUTS = {
    "add": [X[:6].reshape(2, 3), X[6:12].reshape(2, 3)],
    "state": [X[1:5].reshape(1, 4)],
    "cat_topk": [X[:6].reshape(2, 3), X[2:6].reshape(2, 2)],
    "branch": [np.array(True), X[:4].reshape(2, 2)],
    "dynamic": [X.reshape(4, 6)],
}


def attempt(runtime: str, path: Path) -> tuple[str, str]:
    """Load a file and call it twice: ("ran", hash of the results) or ("error", why)."""
    digest = hashlib.sha256()
    try:
        call = RUNTIMES[runtime](path)
        for _ in range(2):
            for output in call(INPUTS[path.name.split(".")[0]]):
                digest.update(f"{output.dtype} {output.shape}".encode())
                digest.update(np.ascontiguousarray(output).tobytes())
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    return "ran", digest.hexdigest()


if __name__ == "__main__":
    for module in MODULES[sys.argv[1]]:
        importlib.import_module(module)
    for argument in sys.argv[2:]:
        signal.alarm(LIMIT)
        what, detail = attempt(sys.argv[1], Path(argument))
        print(json.dumps([argument, what, detail]), flush=True)
