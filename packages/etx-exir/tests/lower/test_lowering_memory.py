# SPDX-License-Identifier: BSD-3-Clause
"""Lowering holds no second copy of the weights."""

import subprocess
import sys

SCRIPT = """
import resource
import torch

module = torch.nn.Sequential(torch.nn.Linear(5000, 5000), torch.nn.Linear(5000, 5000)).eval()
program = torch.export.export(module, (torch.ones(1, 5000),))


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


before = peak()
from etx_exir import to_edge

to_edge(program).to_executorch().save("net.pte")
print(round(peak() - before))
"""
WEIGHTS = 200
ALLOWED = 100
"""Megabytes; half of the weights."""


def test_peak_of_memory(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert (tmp_path / "net.pte").stat().st_size > WEIGHTS * 1_000_000
    assert int(done.stdout) < ALLOWED
