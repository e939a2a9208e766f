# SPDX-License-Identifier: BSD-3-Clause
"""Compile models here and run them on another machine: `other_machine.py make|run FOLDER`.

`make` needs the compiler; `run` only the device's packages, and fails where a result differs.
"""

from __future__ import annotations

import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

BOUND = 1e-5
"""Of floats; integers are equal."""


def programs() -> dict[str, tuple[Any, Any]]:
    """Return files by name, each with an input: portable kernels, `cortex_m::` and an Ethos-U."""
    import torch
    from etx_exir import to_edge, to_edge_transform_and_lower

    sys.path.insert(0, str(Path(__file__).parents[1] / "packages" / "etx-backend-arm" / "tests"))
    import keyword_spotting
    from etx_backend_arm.cortex_m import lower_to_cortex_m
    from etx_backend_arm.ethos_u.backend import EthosUPartitioner
    from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec

    model, real = keyword_spotting.network(), torch.randn(keyword_spotting.SHAPE)
    integer, (x,) = keyword_spotting.quantized(), keyword_spotting.samples(1)
    found = {"float": (to_edge(torch.export.export(model, (real,))), real)}
    exported = torch.export.export(integer, (x,))
    found["int8"] = (to_edge(exported), x)
    found["cortex-m"] = (lower_to_cortex_m(to_edge(exported)), x)
    for target in ("ethos-u55-128", "ethos-u65-256"):
        partitioner = [EthosUPartitioner(EthosUCompileSpec(target))]
        found[target] = (to_edge_transform_and_lower(exported, partitioner=partitioner), x)
    return found


def make(folder: Path) -> None:
    """Write each file, its input and what this machine makes of it."""
    import etx_runtime

    folder.mkdir(parents=True, exist_ok=True)
    for name, (edge, x) in programs().items():
        buffer = bytes(edge.to_executorch().buffer)
        (folder / f"{name}.pte").write_bytes(buffer)
        y = np.asarray(etx_runtime.load(buffer)(x.numpy()))
        np.savez(folder / f"{name}.npz", x=x.numpy(), y=y)


def run(folder: Path) -> None:
    """Run each file and compare."""
    import etx_runtime

    for path in sorted(folder.glob("*.pte")):
        with np.load(path.with_suffix(".npz")) as arrays:
            x, expected = arrays["x"], arrays["y"]
        start = time.thread_time()
        y = np.asarray(etx_runtime.load(str(path))(x))
        took = time.thread_time() - start
        if y.dtype.kind == "f":
            np.testing.assert_allclose(y, expected, rtol=BOUND, atol=BOUND)
        else:
            np.testing.assert_array_equal(y, expected)
        kind = "equal" if y.dtype.kind != "f" else f"within {BOUND}"
        print(f"{path.stem} on {platform.machine()}: {y.size} values {kind}, {took:.1f} s CPU")


if __name__ == "__main__":
    {"make": make, "run": run}[sys.argv[1]](Path(sys.argv[2]))
