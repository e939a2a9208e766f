# SPDX-License-Identifier: BSD-3-Clause
"""The call that a firmware tests itself with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from etx_runtime import Runtime
from etx_runtime.commands.samples import InputOptions, prepare_calls

from etx_backend_arm.firmware.image import Case


def make_case(model: Path, method_name: str, files: list[str], seed: int) -> Case:
    """Return inputs, from files or random, and what this machine's runtime returns for them.

    Errors: EtxError for inputs that do not fit.
    """
    method = Runtime.get().load_program(str(model)).load_method(method_name)
    options = InputOptions(files=[("", file) for file in files], seed=seed)
    (arrays, *_) = prepare_calls(method, options)
    outputs = method.execute(arrays)
    return Case(_tensors(arrays), _tensors(outputs))


def _tensors(values: list[object]) -> list[tuple[int, np.ndarray]]:
    return [(i, np.asarray(v)) for i, v in enumerate(values) if hasattr(v, "__array__")]
