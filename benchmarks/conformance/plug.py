# SPDX-License-Identifier: BSD-3-Clause
"""ETX as lowerer and runtime of the conformance harness: for its own target, and for both."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.export import ExportedProgram


class Etx:
    """Every kernel of ours: target `etx`."""

    target = "etx"

    def lower(self, exported: ExportedProgram) -> bytes:
        from etx_exir import ExecutorchBackendConfig, to_edge

        config = ExecutorchBackendConfig(target=self.target)
        return bytes(to_edge(exported).to_executorch(config).buffer)

    def run(self, pte: bytes, inputs: list[Any]) -> list[Any]:
        """Return the outputs as torch has them; what load refuses is the harness's LoadError."""
        import torch
        from etx_runtime import Runtime

        try:
            method = Runtime.get().load_program(pte).load_method("forward")
        except Exception as error:
            raise sys.modules["__main__"].LoadError(str(error)) from error
        outputs = method.execute(inputs)
        return [torch.from_dlpack(o) if hasattr(o, "__dlpack__") else o for o in outputs]


class Both(Etx):
    """Files that ExecuTorch runs as well: target `executorch`."""

    target = "executorch"
