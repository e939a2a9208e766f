# SPDX-License-Identifier: BSD-3-Clause
"""Lower models under other memory plans: ``<folder>/<model>/<plan>.pte``.

usage: plans.py FOLDER MODEL...
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from etx_exir import (
    Bank,
    ExecutorchBackendConfig,
    MemoryPlanningPass,
    Pin,
    TargetMemoryMap,
    to_edge,
)
from modelset import BUILDERS
from names import PLANS


def planning(plan: str, arena: int) -> MemoryPlanningPass:
    """Return the options of a plan for a method that needs `arena` bytes in one piece."""
    if plan == "banks":
        half = max(arena // 2 // 64 * 64, 64)
        banks = [Bank("SRAM", half, 1), Bank("DRAM", None, 3, 64)]
        pins = [Pin("DRAM", kind="input"), Pin("SRAM", kind="output")]
        return MemoryPlanningPass(memory_map=TargetMemoryMap(banks, pins))
    return MemoryPlanningPass(
        alloc_graph_input="input" not in plan, alloc_graph_output="output" not in plan
    )


BOTH = ExecutorchBackendConfig(target="executorch")


def main(folder: Path, names: list[str]) -> None:
    """Lower each model under each plan."""
    for name in names:
        built = BUILDERS[name]()
        edge = to_edge(
            torch.export.export(built.module, built.example, dynamic_shapes=built.dynamic_shapes)
        )
        (method,) = edge.to_executorch(BOTH).executorch_program.execution_plan
        for plan in PLANS:
            config = ExecutorchBackendConfig(
                target="executorch",
                memory_planning_pass=planning(plan, sum(method.non_const_buffer_sizes)),
            )
            edge.to_executorch(config).save(folder / name / f"{plan}.pte")
        print(f"{name}: lowered under {', '.join(PLANS)}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
