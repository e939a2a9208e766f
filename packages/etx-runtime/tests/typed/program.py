# SPDX-License-Identifier: BSD-3-Clause
"""What a user writes: checked strictly by `nox -s types`, run by test_typed.py."""

from __future__ import annotations

from typing import Any

import etx_runtime
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


class Doubler:
    """A backend."""

    def init(self, blob: bytes, specs: etx_runtime.CompileSpecs, /) -> int:
        return len(blob)

    def execute(self, handle: int, args: list[Any], /) -> None:
        x, out = args
        out[:] = x * 2


def double(x: Floats, out: Floats) -> Floats:
    return x * 2


def count(file: bytes) -> dict[str, Any]:
    """Call a model and its method in every way; return the state that is left."""
    etx_runtime.register_kernel("my::double.out", double)
    etx_runtime.register_backend("Doubler", Doubler())
    names: list[bool] = [etx_runtime.unregister(name) for name in ("my::double.out", "Doubler")]
    assert all(names)
    one: Floats = np.ones(1, np.float32)
    model: etx_runtime.Model = etx_runtime.load(file)
    y: Floats = model(one)
    program: etx_runtime.Program = etx_runtime.Runtime.get().load_program(file)
    needed: int = program.required_bytes().total
    shapes: list[tuple[int, ...] | None] = [info.shape for info in program.inputs()]
    method: etx_runtime.Method = program.load_method("forward")
    outputs: list[Any] = method.execute([one], borrow=True)
    assert needed > 0
    assert shapes == [(1,)]
    assert y == outputs[0]
    try:
        method.set_state({"count": np.ones(2, np.float32)})
    except etx_runtime.InputError as error:
        code: int = error.code
        assert code == 0x12
    method.set_state({"count": one})
    return method.get_state()
