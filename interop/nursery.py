# SPDX-License-Identifier: BSD-3-Clause
"""Runs scripts in processes of their own that begin with modules imported.

usage: nursery.py SOCKET MODULE...

Each message on the socket is a script with its arguments and, as file descriptors, its standard
output and standard error. It runs in the script's folder; the answer is its exit code.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import socket
import sys
from pathlib import Path


def main() -> None:
    """Fork for each message; the child leaves this loop, and ends as any Python does."""
    orders = socket.socket(fileno=int(sys.argv[1]))
    for module in sys.argv[2:]:
        importlib.import_module(module)
    gc.freeze()
    while True:
        message, streams, *_ = socket.recv_fds(orders, 1 << 20, 2)
        if not message:
            return
        child = os.fork()
        if not child:
            orders.close()
            for number, stream in enumerate(streams, 1):
                os.dup2(stream, number)
                os.close(stream)
            script, *words = json.loads(message)
            sys.argv, folder = [script, *words], Path(script).parent
            sys.path[0] = str(folder)
            os.chdir(folder)
            runpy.run_path(script, run_name="__main__")
            return
        for stream in streams:
            os.close(stream)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        orders.send(str(code).encode())


if __name__ == "__main__":
    main()
