# SPDX-License-Identifier: BSD-3-Clause
"""Lower cases of etx-backend-xnnpack and models of the set to XNNPACK, with calls and results;
a model behind `int8-` or `dynamic-` is quantized first.

usage: delegated.py FOLDER NAME...      ``<name>/xnnpack.pte``, ``calls.npz``, ``left.json``
       delegated.py --list              the names of all cases, as JSON

``left.json`` is the number of delegates, and the operators outside of them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from etx_exir import ExecutorchBackendConfig, get_delegation_info, to_edge_transform_and_lower
from etx_exir.delegation.explain import outside
from reference import leaves, record

TESTS = Path(__file__).parents[1] / "packages" / "etx-backend-xnnpack" / "tests"
sys.path.insert(0, str(TESTS))

from case import Case  # noqa: E402
from cases import CASES, HALF_STEPS  # noqa: E402
from lowered import lower  # noqa: E402

BY_NAME = {case.name: case for case in CASES}
SUMMED_IN_HALF = 2 * HALF_STEPS
"""Of ExecuTorch's XNNPACK, which sums in float16 where AVX512-FP16 can; ours never does there."""


def tolerances(case: Case) -> dict[str, float]:
    """Return how far a runtime's results may be off, as a share of eager's largest number."""
    theirs = case.tol
    if theirs == HALF_STEPS and torch.cpu.get_capabilities().get("avx512_fp16"):
        theirs = SUMMED_IN_HALF
    return {"etx": case.tol, "executorch": theirs}


def lower_case(case: Case, folder: Path) -> Any:
    """Write the calls of a case with eager's results; return its program."""
    module, arrays, sizes = case.module(), {}, []
    with torch.no_grad():
        for call, arguments in enumerate(case.arguments()):
            inputs, outputs = leaves(arguments), leaves(module(*arguments))
            arrays.update({f"call{call}_input{i}": x for i, x in enumerate(inputs)})
            arrays.update({f"call{call}_output{i}": x for i, x in enumerate(outputs)})
            sizes.append([len(inputs), len(outputs)])
    np.savez(folder / "calls.npz", **arrays)
    (folder / "calls.json").write_text(json.dumps(sizes))
    (folder / "tol.json").write_text(json.dumps(tolerances(case)))
    return lower(case)


def lower_quantized(name: str, folder: Path) -> Any:
    """Quantize a model of the set first; the calls hold float's results too."""
    from etx_backend_xnnpack.partition import XnnpackPartitioner
    from etx_quant import XNNPACKQuantizer, get_symmetric_quantization_config, quantize
    from modelset import build

    recipe, _, model = name.partition("-")
    built = build(model)
    quantizer = XNNPACKQuantizer()
    dynamic = recipe == "dynamic"
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic))
    module = quantize(built.module, [built.example], quantizer, dynamic_shapes=built.dynamic_shapes)
    arrays, sizes = {}, []
    with torch.no_grad():
        for call, arguments in enumerate(built.calls):
            inputs, outputs = leaves(arguments), leaves(module(*arguments))
            arrays.update({f"call{call}_input{i}": x for i, x in enumerate(inputs)})
            arrays.update({f"call{call}_output{i}": x for i, x in enumerate(outputs)})
            given = leaves(built.module(*arguments))
            arrays.update({f"call{call}_float{i}": x for i, x in enumerate(given)})
            sizes.append([len(inputs), len(outputs)])
    np.savez(folder / "calls.npz", **arrays)
    (folder / "calls.json").write_text(json.dumps(sizes))
    program = torch.export.export(module, built.example, dynamic_shapes=built.dynamic_shapes)
    return to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])


def lower_model(name: str, folder: Path) -> Any:
    """Write the calls of a model of the set with eager's results; return its program."""
    from etx_backend_xnnpack.partition import XnnpackPartitioner
    from modelset import build

    if "-" in name:
        return lower_quantized(name, folder)
    built = build(name)
    record(built.module, built.calls, folder)
    program = torch.export.export(built.module, built.example, dynamic_shapes=built.dynamic_shapes)
    return to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])


def main(folder: Path, names: list[str]) -> None:
    for name in names:
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        try:
            case = BY_NAME.get(name)
            edge = lower_model(name, place) if case is None else lower_case(case, place)
            program = edge.exported_program()
            delegates = get_delegation_info(program.graph_module).num_delegated_subgraphs
            left = [delegates, [row.operator for row in outside(program)]]
            (place / "left.json").write_text(json.dumps(left))
            edge.to_executorch(ExecutorchBackendConfig(target=None)).save(place / "xnnpack.pte")
        except Exception as error:
            (place / "xnnpack.error").write_text(f"{type(error).__name__}: {error}")
        print(f"{name}: lowered to XNNPACK", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print(json.dumps([case.name for case in CASES]))
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
