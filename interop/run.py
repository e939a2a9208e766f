# SPDX-License-Identifier: BSD-3-Clause
"""Run lowered models on one runtime: ``<folder>/<model>/<exporter>.<runtime>.npz``, or ``.error``.

usage: run.py {etx,executorch} FOLDER EXPORTER:MODEL...

The process that runs ETX has neither torch nor ExecuTorch; the other has no ETX.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

Call = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


def load_etx(path: Path) -> Call:
    """Load one method with ETX."""
    from etx_runtime import Runtime

    method = Runtime.get().load_program(path).load_method("forward")
    return lambda inputs: [np.asarray(y) for y in method.execute(list(inputs))]


def load_executorch(path: Path) -> Call:
    """Load one method with ExecuTorch; its inputs and outputs are torch tensors."""
    import executorch.kernels.quantized  # noqa: F401
    import torch
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime

    if portable_lib._threadpool_get_thread_count() > 1:  # threads that wait for others spin
        portable_lib._unsafe_reset_threadpool(1)
    program = Runtime.get().load_program(path)
    method = program.load_method("forward")
    assert method is not None

    def call(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        assert program is not None
        results = method.execute([torch.from_numpy(x) for x in inputs])
        return [torch.as_tensor(y).clone().numpy() for y in results]

    return call


RUNTIMES: dict[str, Callable[[Path], Call]] = {"etx": load_etx, "executorch": load_executorch}


def main(runtime: str, folder: Path, chosen: list[str]) -> None:
    """Make all calls of each file on one loaded method and store the outputs."""
    for exporter, name in (item.split(":") for item in chosen):
        arrays = np.load(folder / name / "calls.npz")
        sizes = json.loads((folder / name / "calls.json").read_text())
        stem = folder / name / f"{exporter}.{runtime}"
        results = {}
        try:
            call = RUNTIMES[runtime](folder / name / f"{exporter}.pte")
            for i, (inputs, _) in enumerate(sizes):
                outputs = call([arrays[f"call{i}_input{k}"] for k in range(inputs)])
                results.update({f"call{i}_output{k}": y for k, y in enumerate(outputs)})
            np.savez(f"{stem}.npz", **results)
        except Exception as error:
            Path(f"{stem}.error").write_text(f"{type(error).__name__}: {error}")
        print(f"{name}: {exporter} file on {runtime}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
