# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, signal, sys
import etx_runtime, torch
from etx_exir import to_edge

torch.set_num_threads(2)
model, x = torch.nn.Linear(1024, 1024), torch.randn(512, 1024)
program = to_edge(torch.export.export(model, (x,))).to_executorch().buffer
run = etx_runtime.load(program, kernels="aten", outputs="torch")
expected = run(x)
child = os.fork()
if child == 0:
    signal.alarm(30)
    torch.testing.assert_close(run(x), expected)
    os._exit(7)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert torch.get_num_threads() == 2
sys.exit(status)
"""


def test_a_fork_after_torchs_pools_exist():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True)
    assert done.returncode == 7, done.stderr.decode()
