# SPDX-License-Identifier: BSD-3-Clause
"""A comparison holds the values of the program once, and of the model those that it needs."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import json, warnings
from pathlib import Path

import torch
from etx_devtools.compare import compare
from etx_exir import to_edge

warnings.simplefilter("ignore")


class Deep(torch.nn.Module):
    def forward(self, x):
        for _ in range(64):
            x = (x * 1.5).sin()
        return x


def peak():
    status = Path("/proc/self/status").read_text()  # ru_maxrss is that of the parent at first
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def compared(count):
    x = torch.randn(count)
    program = torch.export.export(Deep(), (x,))
    pte = to_edge(program).to_executorch().pte_file
    before = peak()
    (call,) = compare(pte, program, [(x,)]).calls
    assert call.first is None
    return len(call.checks), peak() - before


compared(1)
print(json.dumps(compared(1 << 18)))
"""


def test_values_are_held_once():
    done = subprocess.run([sys.executable, "-I", "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results, grown = json.loads(done.stdout)
    values = results * 4 * 2**18
    assert results == 128
    assert 0.5 * values < grown < 1.4 * values
