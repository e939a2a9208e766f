# SPDX-License-Identifier: BSD-3-Clause
"""Executions that were not of this process: a dump brought back, and ExecuTorch's runtime."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from etx_schema import EtxError, ExecutionPlan, PteFile, serialize_pte
from etx_schema import Tensor as WireTensor
from etx_schema.errors import naming
from torch import Tensor

from etx_devtools.compare.here import Here
from etx_devtools.compare.record import Recording, find_method, recordings_of
from etx_devtools.etdump import read_etdump

__all__ = ["Dump", "Ran", "on_executorch"]

WIDEST, PADDING = 16, 64
SCRIPT = """\
import json, sys
import numpy, torch
try:  # the module itself: what wraps it imports ExecuTorch's compiler, in seconds
    from executorch.extension.pybindings._C import _load_for_executorch
except ImportError:
    from executorch.extension.pybindings.portable_lib import _load_for_executorch
file, method, inputs, size, dump, values = sys.argv[1:]
module = _load_for_executorch(file, enable_etdump=True, debug_buffer_size=int(size))
arrays = numpy.load(inputs)
for kinds in json.loads(str(arrays["calls"])):
    given = [
        torch.from_numpy(arrays[name]) if kind == "tensor" else arrays[name].item()
        for name, kind in kinds
    ]
    module.run_method(method, tuple(given))
module.write_etdump_result_to_file(dump, values)
"""


@dataclass(frozen=True)
class Ran:
    """What ran a program: a dump tells it, an interpreter's ExecuTorch, or this machine's runtime.

    The values of `etdump` lie beside it, with the suffix `.bin`.
    """

    etdump: str | None = None
    executorch: str | None = None

    def __str__(self) -> str:
        return self.etdump or ("" if self.executorch is None else "ExecuTorch")

    def of(self, pte: PteFile, method: str, calls: Sequence[Sequence[Any]]) -> Dump | Here:
        """Return the executions of these calls."""
        if self.etdump is not None:
            return Dump(pte, method, Path(self.etdump), Path(self.etdump).with_suffix(".bin"))
        if self.executorch is not None:
            return on_executorch(self.executorch, pte, method, calls)
        return Here(pte, method)


class Dump:
    """The executions in an ETDump, one after the other; EtxError after the last.

    `is_recorded`: others gave the inputs, which a dump does not hold.
    """

    def __init__(
        self, pte: PteFile, method: str, etdump: Path, values: Path, is_recorded: bool = True
    ) -> None:
        plan = pte.program.execution_plan[find_method(pte, method)]
        self.path, self.turn, self.is_recorded = etdump, 0, is_recorded
        with naming(etdump):
            runs = read_etdump(etdump)
            if not values.exists():
                raise EtxError(
                    f"{values}: no such file; `etx run --etdump FILE --values all` writes both"
                )
            self.recordings = recordings_of(plan, runs, values.read_bytes())

    def __call__(self, inputs: Sequence[Any]) -> Recording:
        """Return the next execution, which had these inputs."""
        if self.turn >= len(self.recordings):
            raise EtxError(
                f"{self.path} holds {len(self.recordings)} executions of the method, and there are "
                "inputs of more calls"
            )
        self.turn += 1
        return self.recordings[self.turn - 1]


def on_executorch(python: str, pte: PteFile, method: str, calls: Sequence[Sequence[Any]]) -> Dump:
    """Run calls on ExecuTorch's runtime, where the interpreter `python` has it."""
    plan = pte.program.execution_plan[find_method(pte, method)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, dump, values = (folder / f"m.{end}" for end in ("pte", "etdp", "bin"))
        program.write_bytes(serialize_pte(pte))
        _save(folder / "calls.npz", calls)
        size = (len(calls) + 1) * _room(plan)
        arguments = [program, method, folder / "calls.npz", size, dump, values]
        command = [python, "-W", "ignore", "-c", SCRIPT, *map(str, arguments)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise EtxError(f"{python} is not a Python interpreter: {error}") from error
        if done.returncode:
            said = (done.stderr.strip() or "no message").splitlines()[-1]
            raise EtxError(f"ExecuTorch at {python} ended with {done.returncode}: {said}")
        return Dump(pte, method, dump, values, is_recorded=False)


def _save(path: Path, calls: Sequence[Sequence[Any]]) -> None:
    arrays: dict[str, Any] = {}
    names = []
    for turn, call in enumerate(calls):
        kinds = []
        for place, item in enumerate(call):
            key = f"{turn}_{place}"
            is_array = isinstance(item, (Tensor, np.ndarray))
            arrays[key] = np.ascontiguousarray(item) if is_array else np.asarray(item)
            kinds.append((key, "tensor" if is_array else "number"))
        names.append(kinds)
    arrays["calls"] = np.asarray(json.dumps(names))
    np.savez(path, **arrays)


def _room(plan: ExecutionPlan) -> int:
    """Return bytes that hold all values of an execution, each twice."""
    sizes = [list(v.val.sizes) for v in plan.values if isinstance(v.val, WireTensor)]
    counts = [int(np.prod(size, dtype=np.int64)) for size in sizes]
    return 2 * sum(count * WIDEST // 2 + PADDING for count in counts) + (1 << 16)
