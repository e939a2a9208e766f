# SPDX-License-Identifier: BSD-3-Clause
"""On the build host: `python lower.py FOLDER` writes programs, and what eager mode computes."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from etx_exir import ExecutorchBackendConfig, get_delegation_info, to_edge_transform_and_lower
from etx_exir.target.check import load_target
from models import models
from pointwise_aot import PointwisePartitioner


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    target = replace(load_target("etx"), backends=("PointwiseBackend",))
    for name, (module, calls, dynamic_shapes) in models().items():
        program = torch.export.export(module.eval(), calls[0], dynamic_shapes=dynamic_shapes)
        edge = to_edge_transform_and_lower(program, partitioner=[PointwisePartitioner()])
        info = get_delegation_info(edge.exported_program().graph_module)
        assert info.num_delegated_subgraphs > 0, name
        print(f"{name}: {info.num_delegated_nodes} operators in {info.num_delegated_subgraphs}")
        edge.to_executorch(ExecutorchBackendConfig(target=target)).save(folder / f"{name}.pte")
        arrays = {}
        for i, inputs in enumerate(calls):
            with torch.no_grad():
                results = module(*inputs)
            outputs = results if isinstance(results, tuple) else (results,)
            arrays.update({f"{i}_in_{k}": x.numpy() for k, x in enumerate(inputs)})
            arrays.update({f"{i}_out_{k}": y.numpy() for k, y in enumerate(outputs)})
        np.savez(folder / f"{name}.npz", **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
