# SPDX-License-Identifier: BSD-3-Clause
"""Lower models with one exporter: ``<folder>/<model>/<exporter>.pte``, or ``.error`` and why.

usage: lower.py {etx,executorch} FOLDER MODEL...

Each exporter is imported only when chosen: neither environment holds the other's package.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import torch
from modelset import build

EXIR_TESTS = Path(__file__).parents[1] / "packages/etx-exir/tests"


def lower_etx(program: torch.export.ExportedProgram, path: Path) -> None:
    """Lower with ETX for both runtimes, and for its own as `own.pte`; note what folding did to the
    size of the constants."""
    from etx_exir import ExecutorchBackendConfig, to_edge

    sys.path.insert(0, str(EXIR_TESTS))
    from growth import Growth

    growth = Growth()
    edge = to_edge(program, observer=growth)
    try:
        edge.to_executorch(ExecutorchBackendConfig(target="executorch")).save(str(path))
    finally:
        path.with_name("growth.json").write_text(json.dumps(growth.bytes))
        edge.to_executorch().save(str(path.with_name("own.pte")))


def lower_executorch(program: torch.export.ExportedProgram, path: Path) -> None:
    """Lower with ExecuTorch; initial values of buffers are kept only by the pass for it."""
    import executorch.kernels.quantized  # noqa: F401  (out variants of quantized operators)
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

    config = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass([""])])
    to_edge(program).to_executorch(config).save(str(path))


EXPORTERS: dict[str, Callable[[torch.export.ExportedProgram, Path], None]] = {
    "etx": lower_etx,
    "executorch": lower_executorch,
}


def exported(name: str, written: Path) -> torch.export.ExportedProgram:
    """Return the program of a model, the `written` one if there is one: it may be quantized."""
    if written.exists():
        import_module("torch.ao.quantization.fx._decomposed")  # registers quantized_decomposed
        import_module("torchao.quantization")  # and torchao
        return torch.export.load(written)
    built = build(name)
    return torch.export.export(built.module, built.example, dynamic_shapes=built.dynamic_shapes)


def main(exporter: str, folder: Path, names: list[str]) -> None:
    """Lower each model; a refusal is written down, not raised."""
    for name in names:
        stem = folder / name / exporter
        begin = time.perf_counter()
        try:
            program = exported(name, stem.with_name("program.pt2"))
            begin = time.perf_counter()
            with torch.no_grad():
                EXPORTERS[exporter](program, stem.with_suffix(".pte"))
        except Exception as error:
            stem.with_suffix(".error").write_text(f"{type(error).__name__}: {error}")
        seconds = time.perf_counter() - begin
        stem.with_suffix(".json").write_text(json.dumps({"seconds": seconds}))
        print(f"{name}: lowered by {exporter} in {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
