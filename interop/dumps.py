# SPDX-License-Identifier: BSD-3-Clause
"""Record programs of ETX's compiler on either runtime and read the dumps with either Inspector.

usage: dumps.py lower FOLDER NAME...     `<name>-<kind>.pte` and `<name>.npz`, two inputs
       dumps.py etx|executorch record FOLDER      `<file>.<side>.etdp` and its values, `.bin`
       dumps.py etx|executorch read FOLDER        prints the rows of all dumps as JSON
       dumps.py both read FOLDER                  those of both Inspectors, in one process

A kind is portable, xnnpack or methods, where the program has two. Every method is called twice
with one input; in dumps that end in -inputs with two.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

PACKAGE = {"etx": "etx_executorch", "executorch": "executorch"}
KINDS = {"portable": ("forward",), "xnnpack": ("forward",), "methods": ("forward", "other")}
TWO_METHODS = ("lstm",)
SPARE = 1 << 20


def lower(folder: Path, names: list[str]) -> None:
    """Write each model in all kinds, for both runtimes."""
    import torch
    from etx_backend_xnnpack.partition import XnnpackPartitioner
    from etx_exir import ExecutorchBackendConfig, to_edge_transform_and_lower
    from modelset import build

    config = ExecutorchBackendConfig(target="executorch")
    for name in names:
        built = build(name)
        program = torch.export.export(
            built.module, built.example, dynamic_shapes=built.dynamic_shapes
        )
        made: dict[str, Any] = {
            "portable": (program, []),
            "xnnpack": (program, [XnnpackPartitioner()]),
        }
        if name in TWO_METHODS:
            made["methods"] = dict.fromkeys(KINDS["methods"], program), []
        for kind, (given, partitioners) in made.items():
            edge = to_edge_transform_and_lower(given, partitioner=partitioners)
            edge.to_executorch(config).save(str(folder / f"{name}-{kind}.pte"))
        np.savez(folder / f"{name}.npz", *(x.numpy() for (x,) in built.calls[:2]))


def programs(folder: Path) -> list[tuple[Path, str, list[tuple[str, Any]]]]:
    """Return files, names of their dumps, and the calls of each: method and input."""
    found = []
    for path in sorted(folder.glob("*.pte")):
        name, _, kind = path.stem.rpartition("-")
        with np.load(folder / f"{name}.npz") as arrays:
            one, other = (arrays[key] for key in arrays.files)
        methods = KINDS[kind]
        found.append((path, path.stem, [(method, one) for method in methods for _ in range(2)]))
        if name in TWO_METHODS:
            inputs = [(method, x) for method in methods for x in (one, other)]
            found.append((path, f"{path.stem}-inputs", inputs))
    return found


def record_etx(folder: Path) -> None:
    """Record with values, and once with threads."""
    from etx_runtime import Recorder, Runtime, set_num_threads

    set_num_threads(2)
    for path, stem, calls in programs(folder):
        program = Runtime.get().load_program(str(path))
        for side, recorder in (("etx", Recorder("all")), ("threads", Recorder(threads=True))):
            methods = {name: program.load_method(name, recorder=recorder) for name in dict(calls)}
            for name, x in calls:
                methods[name].trace([x], recorder)
            recorder.save(folder / f"{stem}.{side}.etdp", folder / f"{stem}.{side}.bin")


def record_executorch(folder: Path) -> None:
    """Record with values; what a buffer too small ends is the process, so that ours says how many
    bytes they have."""
    import torch
    from executorch.extension.pybindings import portable_lib

    for path, stem, calls in programs(folder):
        size = (folder / f"{stem}.etx.bin").stat().st_size + SPARE
        module = portable_lib._load_for_executorch(
            str(path), enable_etdump=True, debug_buffer_size=size
        )
        for name, x in calls:
            module.run_method(name, (torch.from_numpy(x),))
        files = [str(folder / f"{stem}.executorch.{end}") for end in ("etdp", "bin")]
        module.write_etdump_result_to_file(*files)


def read(side: str, folder: Path) -> dict[str, Any]:
    """Return the rows of all dumps, or the error."""
    devtools = importlib.import_module(f"{PACKAGE[side]}.devtools")
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.etdp")):
        values = path.with_suffix(".bin")
        given = str(values) if values.stat().st_size else None
        try:
            inspector = devtools.Inspector(etdump_path=str(path), debug_buffer_path=given)
        except Exception as error:
            found[path.stem] = f"{type(error).__name__}: {error}"
            continue
        rows = []
        for block in inspector.event_blocks:
            for event in block.events:
                shapes = [list(np.shape(value)) for value in event.debug_data]
                rows.append(
                    {
                        "block": block.name,
                        "name": event.name,
                        "raw": event.perf_data.raw if event.perf_data else [],
                        "delegate": event.delegate_debug_identifier,
                        "is_delegated": event.is_delegated_op,
                        "shapes": shapes,
                    }
                )
        found[path.stem] = rows
    if side == "etx":
        from etx_devtools.etdump import read_etdump

        found["lanes"] = {
            path.stem: sorted({part.thread for run in read_etdump(path) for part in run.threads})
            for path in folder.glob("*.threads.etdp")
        }
    return found


if __name__ == "__main__":
    if sys.argv[1] == "lower":
        lower(Path(sys.argv[2]), sys.argv[3:])
    elif sys.argv[2] == "record":
        {"etx": record_etx, "executorch": record_executorch}[sys.argv[1]](Path(sys.argv[3]))
    elif sys.argv[1] == "both":
        print(json.dumps({side: read(side, Path(sys.argv[3])) for side in PACKAGE}))
    else:
        print(json.dumps(read(sys.argv[1], Path(sys.argv[3]))))
