# SPDX-License-Identifier: BSD-3-Clause
"""What storing weights in bfloat16 came to: what stayed float32 and why, and how far results are
from eager's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from etx_exir.delegation.explain import Declined, declined, operators, table
from etx_exir.ir.own_ops import ATTENTION, BMM_NT
from etx_exir.ir.provenance import module_path, source_line
from etx_exir.narrow.operators import NARROW_CONV, NARROW_LINEAR
from etx_exir.passes.narrow import NARROW
from etx_exir.program import ExecutorchProgramManager

__all__ = ["Precision"]

aten = torch.ops.aten
PRODUCTS = {
    aten.mm.default: "both of its operands are computed",
    aten.bmm.default: "both of its operands are computed",
    BMM_NT: "both of its operands are computed",
    aten.addmm.default: "both of its operands are computed",
    ATTENTION: "its queries, keys and values are computed; a softmax in half loses small weights",
}
REST = "norms, softmaxes, sums and pointwise operators: they have no weight to read, or a small one"


@dataclass
class Precision:
    """Of all methods: how many layers are stored in half, what is not, the largest errors."""

    narrow: int
    left: list[Declined]
    rest: int
    errors: dict[str, float]

    @classmethod
    def of(
        cls, programs: Mapping[str, ExportedProgram], result: ExecutorchProgramManager
    ) -> Precision:
        """Look at a finished file, and run each of its methods on its example inputs."""
        found = cls(0, [], 0, {})
        names = {item.name for item in NARROW}
        for method in sorted(programs):
            fitted = result.exported_program(method)
            rows = [row for row in declined(fitted, method) if row.by in names]
            rows += _products(fitted, method)
            called = Counter(node.target for node in operators(fitted.graph_module))
            narrow = called[NARROW_LINEAR] + called[NARROW_CONV]
            found.narrow += narrow
            found.rest += called.total() - narrow - sum(row.times for row in rows)
            found.left += rows
            error = _error(programs[method], fitted)
            if error is not None:
                found.errors[method] = error
        return found

    def document(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        left = [asdict(row) for row in self.left]
        return {"layers": self.narrow, "float32": left, "others": self.rest, "errors": self.errors}

    def summary(self) -> str:
        """Return lines to print."""
        rows: list[tuple[Any, ...]] = [
            (r.operator, r.times, r.module, r.source, r.reason) for r in self.left
        ]
        rows.append((f"{self.rest} others", "", "", "", REST))
        lines = [
            f"{self.narrow} layers have their weights in bfloat16; what stays float32:",
            table(rows, ("operator", "times", "module", "source", "why it stays float32")),
        ]
        for method, error in self.errors.items():
            lines.append(
                f"largest error of {method} relative to eager: {error:.2e} of the largest value of"
                " its output, on the example inputs"
            )
        return "\n".join(lines)


def _products(program: ExportedProgram, method: str) -> list[Declined]:
    """Return the products that have no weight."""
    found: dict[Any, list[Any]] = {}
    for node in operators(program.graph_module):
        if node.target in PRODUCTS:
            found.setdefault(node.target, []).append(node)
    return [
        Declined(
            str(target),
            "",
            PRODUCTS[target],
            len(nodes),
            method,
            module_path(nodes[0]) or "",
            source_line(nodes[0]),
        )
        for target, nodes in found.items()
    ]


def _error(program: ExportedProgram, fitted: ExportedProgram) -> float | None:
    """Return the largest error of an output over its largest value; None without inputs to run."""
    if program.example_inputs is None:
        return None
    expected, got = (_run(each, program.example_inputs) for each in (program, fitted))
    errors = [
        float((a.double() - b.double()).abs().max() / max(float(a.abs().max()), 1e-30))
        for a, b in zip(expected, got, strict=True)
        if a.numel() and a.is_floating_point()
    ]
    return max(errors, default=0.0)


def _run(program: ExportedProgram, inputs: Any) -> list[Tensor]:
    """Return the tensors that a program gives, and leave its state as it was."""
    module: Any = program.module(check_guards=False)
    kept = [(buffer, buffer.clone()) for buffer in module.buffers()]
    args, kwargs = pytree.tree_map_only(Tensor, torch.clone, inputs)
    with torch.no_grad():
        made = module(*args, **kwargs)
        for buffer, before in kept:
            buffer.copy_(before)
    return [value.detach() for value in pytree.tree_leaves(made) if isinstance(value, Tensor)]
