# SPDX-License-Identifier: BSD-3-Clause
"""Runs scripts in processes of their own that begin with torch imported, and nothing of ETX.

Reads a line of JSON each: script, folder to run it in, file for what it prints. Prints its exit
code.
"""

from __future__ import annotations

import json
import os
import runpy
import sys

import torch._dynamo  # noqa: F401
import torchao.quantization.pt2e.quantize_pt2e  # noqa: F401


def main() -> None:
    """Fork for each line; the child leaves this loop, and ends as any Python does."""
    while line := sys.stdin.readline():
        script, folder, printed = json.loads(line)
        child = os.fork()
        if not child:
            os.dup2(os.open(printed, os.O_WRONLY | os.O_CREAT), 1)
            os.dup2(1, 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.chdir(folder)
            sys.argv, sys.path[0] = [script], folder
            runpy.run_path(script, run_name="__main__")
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    assert not any(name.startswith("etx") for name in sys.modules)
    main()
