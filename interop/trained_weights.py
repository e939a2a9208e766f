# SPDX-License-Identifier: BSD-3-Clause
"""Quantize models with their trained weights: `trained_weights.py FOLDER CASE...`.

Writes into `<case>`: float's calls and results, `etx.pte` for ETX, `shared.pte` for both runtimes,
`xnnpack.pte` with XNNPACK's delegates for both, `report.json`, and `delegated.json`: the number of
delegates and the operators outside of them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import (
    ExecutorchBackendConfig,
    get_delegation_info,
    to_edge,
    to_edge_transform_and_lower,
)
from etx_exir.delegation.explain import outside
from etx_quant import quantize_with_report
from modelset import Built, build
from sentence_pairs import PAIRS
from torch import Tensor
from torch.fx import GraphModule

TONES = tuple(110.0 * 2 ** (i / 7) for i in range(24))


@dataclass(frozen=True)
class Case:
    """A model of the set, a recipe, the calls that calibrate and those that are compared."""

    model: str
    recipe: str
    data: Callable[[], tuple[list[Any], list[Any]]]


def sentences() -> tuple[list[Any], list[Any]]:
    """Return a few sentences, and all: the first of each pair, then the second."""
    import minilm
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(minilm.weights_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    texts = [pair[side] for side in (0, 1) for pair in PAIRS]
    tokens = [(torch.tensor([tokenizer.encode(text).ids]),) for text in texts]
    return tokens[:8], tokens


def tones() -> tuple[list[Any], list[Any]]:
    """Return frames of rich tones between those that are compared, and these."""
    from modelset.sequence import tone

    def rich(hertz: float, level: float) -> Tensor:
        frame = tone(hertz) + level * tone(2 * hertz) + level**2 * tone(3 * hertz)
        return (frame - frame.mean()) / frame.std()

    torch.manual_seed(0)
    shifted = [rich(hertz * 1.04, 0.6) + 0.05 * torch.randn(1, 1024) for hertz in TONES]
    return [(frame,) for frame in shifted], [(rich(hertz, 0.5),) for hertz in TONES]


CASES = {
    "minilm-int8-dynamic": Case("minilm", "int8-dynamic", sentences),
    "minilm-int4": Case("minilm", "int4", sentences),
    "crepe-int8": Case("crepe", "int8", tones),
}


def record(built: Built, calls: list[Any], folder: Path) -> None:
    """Write the calls with the results of the float model."""
    arrays = {}
    with torch.no_grad():
        for i, (x,) in enumerate(calls):
            arrays[f"call{i}_input0"] = x.numpy()
            arrays[f"call{i}_output0"] = built.module(x).numpy()
    np.savez(folder / "calls.npz", **arrays)
    (folder / "calls.json").write_text(json.dumps([[1, 1]] * len(calls)))


def write(module: GraphModule, built: Built, folder: Path) -> None:
    """Lower for each target, and to XNNPACK."""
    program = torch.export.export(module, built.example, dynamic_shapes=built.dynamic_shapes)
    edge = to_edge(program)
    for name, target in (("etx", "etx"), ("shared", "executorch")):
        config = ExecutorchBackendConfig(target=target)
        edge.to_executorch(config).save(folder / f"{name}.pte")
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    lowered = edge.exported_program()
    count = get_delegation_info(lowered.graph_module).num_delegated_subgraphs
    left = [count, sorted({row.operator for row in outside(lowered)})]
    (folder / "delegated.json").write_text(json.dumps(left))
    config = ExecutorchBackendConfig(target="executorch")
    edge.to_executorch(config).save(folder / "xnnpack.pte")


def main(folder: Path, names: list[str]) -> None:
    for name in names:
        case, place = CASES[name], folder / name
        place.mkdir(parents=True, exist_ok=True)
        built = build(case.model)
        calibration, calls = case.data()
        record(built, calls, place)
        module, report = quantize_with_report(
            built.module,
            [built.example, *calibration],
            recipe=case.recipe,
            dynamic_shapes=built.dynamic_shapes,
        )
        (place / "report.json").write_text(report.json())
        write(module, built, place)
        print(f"{name}: {report.summary()}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
