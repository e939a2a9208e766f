# SPDX-License-Identifier: BSD-3-Clause
"""Write or read an ETRecord and a dump with values, on either side.

usage: etrecord.py etx|executorch write|read FOLDER. What is read is printed as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import torch

PACKAGE = {"etx": "etx_executorch", "executorch": "executorch"}


class Net(torch.nn.Module):
    """Two matrices, a fused norm, a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
        self.two = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3), torch.nn.BatchNorm1d(3))
        self.two[1].running_mean.uniform_(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return probabilities."""
        return torch.softmax(self.two(self.one(x)[None]), -1)


def sample() -> tuple[Net, tuple[torch.Tensor]]:
    """Return the model, the same each time, and its inputs."""
    torch.manual_seed(0)
    return Net().eval(), (torch.randn(2, 4),)


def write(side: str, folder: Path) -> None:
    """Compile, keep a record, run once."""
    exir = importlib.import_module(f"{PACKAGE[side]}.exir")
    lib: Any = importlib.import_module(f"{PACKAGE[side]}.extension.pybindings.portable_lib")
    module, inputs = sample()
    program = torch.export.export(module, inputs)
    edge = exir.to_edge_transform_and_lower(program, generate_etrecord=True)
    finished = edge.to_executorch()
    record = finished.get_etrecord()
    record.update_representative_inputs([inputs])
    record.save(str(folder / f"{side}.etrecord"))
    load = lib._load_for_executorch_from_buffer
    module = load(finished.buffer, enable_etdump=True, debug_buffer_size=1 << 16)
    module.forward(inputs)
    files = [str(folder / f"{side}.{end}") for end in ("etdp", "bin")]
    module.write_etdump_result_to_file(*files)


def read(side: str, folder: Path) -> None:
    """Say of each side's files what this side's Inspector makes of them."""
    devtools = importlib.import_module(f"{PACKAGE[side]}.devtools")
    found = {}
    for other in PACKAGE:
        names = [str(folder / f"{other}.{end}") for end in ("etdp", "etrecord", "bin")]
        inspector = devtools.Inspector(
            etdump_path=names[0], etrecord=names[1], debug_buffer_path=names[2]
        )
        table = inspector.to_dataframe()
        columns = ["event_name", "op_types", "stack_traces", "module_hierarchy"]
        gaps = inspector.calculate_numeric_gap("MSE").to_dict("records")
        record = devtools.parse_etrecord(names[1])
        found[other] = {
            "rows": table[columns].to_dict("records"),
            "gaps": [[r["aot_ops"], r["runtime_ops"], float(r["gap"][0])] for r in gaps],
            "handles": record._debug_handle_map["forward"],
            "programs": [
                record.exported_program is not None,
                record.edge_dialect_program is not None,
            ],
        }
    print(json.dumps(found))


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[2]](sys.argv[1], Path(sys.argv[3]))
