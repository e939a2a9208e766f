# SPDX-License-Identifier: BSD-3-Clause
"""Executions on this machine, recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import etx_runtime
from etx_schema import PteFile, serialize_pte

from etx_devtools.compare.record import Recording, find_method, recordings_of
from etx_devtools.etdump import read_etdump

__all__ = ["Here"]


class Here:
    """Runs a method, loaded once: buffers keep their values from call to call."""

    def __init__(self, pte: PteFile, method: str) -> None:
        self.plan = pte.program.execution_plan[find_method(pte, method)]
        program = etx_runtime.Runtime.get().load_program(serialize_pte(pte))
        self.method = program.load_method(method)

    def __call__(self, inputs: Sequence[Any]) -> Recording:
        """Execute with flat inputs; what is returned holds the recorder's memory."""
        recorder = etx_runtime.Recorder("all")
        self.method.trace(list(inputs), recorder)
        runs = read_etdump(recorder.etdump())
        (recording,) = recordings_of(self.plan, runs, recorder.debug_view())
        return recording
