# SPDX-License-Identifier: BSD-3-Clause
"""Compare the weights of two files: equal, other type, other values, only in one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from etx_schema import PteFile

from etx_devtools.diff.rows import Constant, Row

__all__ = ["WeightChange", "compare_weights"]


WEIGHT = 1
"""The argument that is a layer's weight, whichever operator computes it."""


@dataclass(frozen=True)
class WeightChange:
    """A weight that is not equal in both files; `largest` is None where it was not compared."""

    name: str
    change: str
    """`values`, `retyped`, `reshaped`, `added` or `removed`."""
    before: str = ""
    after: str = ""
    largest: float | None = None
    readers: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    """The instructions that read it, before and after."""


def compare_weights(
    one: PteFile,
    other: PteFile,
    rows: tuple[list[Row], list[Row]],
    pairs: Iterable[tuple[Row, Row]],
) -> tuple[int, list[WeightChange]]:
    """Return how many weights are equal, and the others: by name, else by who uses them."""
    sides = [_named(side) for side in rows]
    partners: dict[Constant, Constant] = {}
    for name, weight in sides[0].items():
        if name in sides[1]:
            partners[weight] = sides[1][name]
    taken = set(partners.values())
    for old, new in pairs:
        theirs = dict(new.constants)
        for place, weight in old.constants:
            if old.operator != new.operator and place != WEIGHT:
                continue
            if place in theirs and weight not in partners and theirs[place] not in taken:
                partners[weight] = theirs[place]
                taken.add(theirs[place])
    places = _places(rows[0]) | _places(rows[1])
    before, after = (_readers(side) for side in rows)
    equal, changes = 0, []
    for weight in _all(rows[0]):
        partner, own = partners.get(weight), before[weight.index]
        if partner is None:
            gone = WeightChange(_label(weight, places), "removed", before=_type(weight))
            changes.append(replace(gone, readers=(own, ())))
        elif change := _compare(one, other, weight, partner, places):
            changes.append(replace(change, readers=(own, after[partner.index])))
        else:
            equal += 1
    for weight in _all(rows[1]):
        if weight not in taken:
            come = WeightChange(_label(weight, places), "added", after=_type(weight))
            changes.append(replace(come, readers=((), after[weight.index])))
    return equal, changes


def _readers(rows: list[Row]) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for row in rows:
        for _, weight in row.constants:
            found[weight.index] = (*found.get(weight.index, ()), row.index)
    return found


def _all(rows: list[Row]) -> list[Constant]:
    found = (weight for row in rows for _, weight in row.constants)
    return list({weight.index: weight for weight in found}.values())


def _named(rows: list[Row]) -> dict[str, Constant]:
    return {weight.name: weight for weight in _all(rows) if weight.name}


def _places(rows: list[Row]) -> dict[Constant, str]:
    return {
        weight: f"argument {place} of {row.operator} ({row.place})"
        for row in reversed(rows)
        for place, weight in row.constants
    }


def _label(weight: Constant, places: dict[Constant, str]) -> str:
    return weight.name or places.get(weight, f"const{weight.index + 1}")


def _type(weight: Constant) -> str:
    return f"{weight.dtype}{list(weight.sizes)}"


def _compare(
    one: PteFile, other: PteFile, old: Constant, new: Constant, places: dict[Constant, str]
) -> WeightChange | None:
    label = _label(old, places)
    blobs = [_blob(one, old.index), _blob(other, new.index)]
    kind = "retyped" if old.dtype != new.dtype else "reshaped" if old.sizes != new.sizes else ""
    if not kind and memoryview(blobs[0]) == memoryview(blobs[1]):
        return None
    values = [_numbers(blob, each) for blob, each in zip(blobs, (old, new), strict=True)]
    largest = None
    known = values[0] is not None and values[1] is not None and old.sizes == new.sizes
    if known and (values[0].dtype.kind == "f") == (values[1].dtype.kind == "f"):
        with np.errstate(all="ignore"):
            gap = np.abs(values[0].astype(np.float64) - values[1].astype(np.float64))
        largest = float(np.where(np.isnan(gap), np.inf, gap).max()) if gap.size else 0.0
    return WeightChange(label, kind or "values", _type(old), _type(new), largest)


def _blob(pte: PteFile, index: int) -> Any:
    return pte.constants[index] if 0 <= index < len(pte.constants) else b""


def _numbers(blob: Any, weight: Constant) -> Any:
    try:
        dtype = np.dtype(weight.dtype)
    except TypeError:
        if weight.dtype != "bfloat16" or len(blob) % 2:
            return None
        bits = np.frombuffer(blob, np.uint16).astype(np.uint32) << 16
        return bits.view(np.float32)
    size = int(np.prod(weight.sizes, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer(blob, dtype, size // dtype.itemsize) if len(blob) >= size else None
