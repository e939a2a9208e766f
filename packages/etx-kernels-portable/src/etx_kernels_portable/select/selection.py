# SPDX-License-Identifier: BSD-3-Clause
"""What files use of this library: operators, dtypes, families."""

from __future__ import annotations

import ctypes as c
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from etx_schema.dtypes import DTYPES
from etx_schema.errors import EtxError, ProgramError
from etx_schema.operator_names import operator_name
from etx_schema.pte_reader import read_pte

from etx_kernels_portable._tables import tables

FAMILY = re.compile(r"^ +X\(([a-z_0-9]+)\)", re.MULTILINE)


@dataclass(frozen=True)
class Selection:
    """Operators of the library that files call, dtypes and dim orders of all of their tensors."""

    operators: tuple[str, ...]
    dtypes: tuple[str, ...]
    dim_orders: bool
    """Whether a tensor may be other than row-major, such as channels last."""
    families: dict[str, tuple[str, ...]]
    """By family, in the library's order: its operators that are used."""
    elsewhere: tuple[str, ...]
    """Operators that another plugin must bring."""

    @property
    def orders(self) -> str:
        """Return in words in which dim orders tensors may be."""
        return "any" if self.dim_orders else "row-major"

    def header(self, command: str) -> str:
        """Return the C++ header that a build reads (native/selection.h)."""
        bits = sum(1 << bit for bit, (name, _) in DTYPES.items() if name in self.dtypes)
        rows = " \\\n".join(f'  X("{name}")' for name in self.operators)
        left_out = " \\\n".join(
            f'  X({number}, "{name}")'
            for number, (name, _) in DTYPES.items()
            if name not in self.dtypes
        )
        return (
            f"// Written by: {command}\n"
            f"// dtypes: {', '.join(self.dtypes)}; dim orders: {self.orders}\n"
            f"#define ETX_SELECTED_DTYPES uint64_t{{{bits:#x}}}\n"
            f"#define ETX_SELECTED_DIM_ORDERS {int(self.dim_orders)}\n"
            f"#define ETX_SELECTED_OPERATORS(X) \\\n{rows}\n"
            f"#define ETX_LEFT_OUT_DTYPES(X) \\\n{left_out}\n"
        )


def select(
    files: Iterable[str],
    operators: Iterable[str],
    dtypes: Iterable[str],
    library: dict[str, list[str]],
    dim_orders: bool = False,
) -> Selection:
    """Return what `files` use, and what is asked for by name, of `library`: operators by family.

    Errors: ProgramError for a file that is not a program; EtxError when nothing of the library is
    used, or for an operator by name that it lacks.
    """
    known = {name for names in library.values() for name in names}
    for name in operators:
        if name not in known:
            raise EtxError(f"etx-kernels-portable has no operator {name!r}")
    named = {name for name, _ in DTYPES.values()}
    for name in dtypes:
        if name not in named:
            raise EtxError(f"expected a dtype such as float32, got {name!r}")
    called, held = set(operators), set(dtypes)
    for file in files:
        try:
            program = read_pte(file).program
        except ProgramError as error:
            raise EtxError(f"{file}: {error}") from error
        for plan in program.execution_plan:
            called.update(operator_name(plan, i) for i in range(len(plan.operators)))
            held.update(dtypes_of(plan.values))
            dim_orders = dim_orders or not all(map(is_row_major, plan.values))
    if not called & known:
        names = ", ".join(sorted(called)) or "no operator at all: delegates only"
        raise EtxError(f"nothing of etx-kernels-portable is used; the files call {names}")
    families = {
        family: tuple(sorted(called.intersection(names))) for family, names in library.items()
    }
    return Selection(
        operators=tuple(sorted(called & known)),
        dtypes=tuple(name for name, _ in DTYPES.values() if name in held),
        dim_orders=dim_orders,
        families={family: names for family, names in families.items() if names},
        elsewhere=tuple(sorted(called - known)),
    )


def dtypes_of(values: Iterable[object]) -> set[str]:
    """Return the dtypes of a method's tensors by name."""
    found = set()
    for value in values:
        scalar_type = getattr(getattr(value, "val", None), "scalar_type", None)
        if scalar_type is not None:
            found.add(DTYPES[int(scalar_type)][0])
    return found


def is_row_major(value: object) -> bool:
    """Tell whether a value is a tensor whose dimensions lie in their order, or no tensor."""
    order = getattr(getattr(value, "val", None), "dim_order", None)
    return order is None or list(order) == sorted(order)


def families(sources: Path, plugin: str) -> dict[str, list[str]]:
    """Return the operators of the installed library by family; `sources` are of its version."""
    names = FAMILY.findall((sources / "native" / "families.h").read_text(encoding="utf-8"))
    rows = [[row.name.decode() for row in table] for table in tables(c.CDLL(plugin))]
    if len(names) != len(rows):
        raise EtxError(
            f"{sources} has {len(names)} families of kernels and {plugin} {len(rows)}: "
            "they are not of one version"
        )
    return dict(zip(names, rows, strict=True))
