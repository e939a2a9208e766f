# SPDX-License-Identifier: BSD-3-Clause
"""Runs commands in processes of their own that begin with torch and the compiler imported.

Reads a line of JSON each: the command's words, its folder, the files that are its standard output
and standard error, and whether output is unbuffered. Prints its exit code.
"""

from __future__ import annotations

import io
import json
import os
import runpy
import sys

import etx_exir.commands  # noqa: F401
import torch._dynamo  # noqa: F401


def main() -> None:
    """Fork for each line; the child leaves this loop, and ends as any Python does."""
    while line := sys.stdin.readline():
        words, folder, output, errors, unbuffered = json.loads(line)
        child = os.fork()
        if not child:
            os.dup2(os.open(output, os.O_WRONLY), 1)
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            if unbuffered:
                sys.stdout = io.TextIOWrapper(io.FileIO(1, "w"), write_through=True)
            os.chdir(folder)
            sys.argv, sys.path[0] = ["etx", *words], folder
            runpy.run_module("etx_schema.cli", run_name="__main__")
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
