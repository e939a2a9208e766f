# SPDX-License-Identifier: BSD-3-Clause
"""The call that a firmware tests itself with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from etx_runtime import Runtime
from etx_runtime.commands.samples import InputOptions, prepare_calls
from etx_schema.errors import EtxError

from etx_backend_arm.firmware.project import Case


def make_case(model: Path, method_name: str, files: list[str], seed: int) -> Case:
    """Return inputs, from files or random, and what this machine's runtime returns for them.

    Errors: EtxError for inputs and outputs that are not tensors of a fixed shape.
    """
    program = Runtime.get().load_program(str(model))
    if method_name not in program.method_names:
        raise EtxError(f"{model} has no method {method_name!r}: {sorted(program.method_names)}")
    method = program.load_method(method_name)
    for info in (*method.inputs, *method.outputs):
        if info.kind == "tensor" and info.is_dynamic:
            raise EtxError(
                f"{model}: {info.name or 'an output'} has a dynamic shape, and firmware is static: "
                "export the model without dynamic_shapes"
            )
    options = InputOptions(files=[("", file) for file in files], seed=seed)
    (arrays, *_) = prepare_calls(method, options)
    outputs = method.execute(arrays)
    return Case(_tensors(arrays), _tensors(outputs))


def _tensors(values: list[object]) -> list[tuple[int, np.ndarray]]:
    return [(i, np.asarray(v)) for i, v in enumerate(values) if hasattr(v, "__array__")]
