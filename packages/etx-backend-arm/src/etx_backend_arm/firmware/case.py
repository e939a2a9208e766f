# SPDX-License-Identifier: BSD-3-Clause
"""The call that a firmware tests itself with."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from etx_runtime import Method, Runtime
from etx_runtime.commands.samples import InputOptions, prepare_calls
from etx_schema.stopping import run_child

from etx_backend_arm.firmware.image import Case

MEASURE = "from etx_backend_arm.firmware.case import print_temporary; print_temporary()"
PLAIN = {"ETX_KERNELS_ISA": "base", "ETX_NUM_THREADS": "1"}
"""The kernels of a microcontroller: no instructions but those that all processors have."""


def make_case(model: Path, method_name: str, files: list[str], seed: int) -> Case:
    """Return inputs, from files or random, and what this machine's runtime returns for them.

    Errors: EtxError for inputs that do not fit.
    """
    method = Runtime.get().load_program(str(model)).load_method(method_name)
    arrays = _arrays(method, files, seed)
    outputs = method.execute(arrays)
    return Case(_tensors(arrays), _tensors(outputs))


def measure_temporary(model: Path, method: str, files: list[str], seed: int) -> int | None:
    """Return the most scratch of a kernel in a call by this machine's plainest kernels.

    In a process of its own. None where there is no such call.
    """
    command = [sys.executable, "-c", MEASURE, str(model), method, str(seed), *files]
    done = run_child(command, env=os.environ | PLAIN)
    return int(done.stdout) if done.returncode == 0 else None


def print_temporary() -> None:
    """Call a method of a file by the words behind the program's name, and print its scratch."""
    model, method_name, seed, *files = sys.argv[1:]
    method = Runtime.get().load_program(model).load_method(method_name)
    for _ in range(2):  # the second has it in one piece
        method.execute(_arrays(method, files, int(seed)))
    print(method.memory_bytes()["temp"])


def _arrays(method: Method, files: list[str], seed: int) -> list[object]:
    options = InputOptions(files=[("", file) for file in files], seed=seed)
    (arrays, *_) = prepare_calls(method, options)
    return list(arrays)


def _tensors(values: list[object]) -> list[tuple[int, np.ndarray]]:
    return [(i, np.asarray(v)) for i, v in enumerate(values) if hasattr(v, "__array__")]
