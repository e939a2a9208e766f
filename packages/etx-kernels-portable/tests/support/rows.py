# SPDX-License-Identifier: BSD-3-Clause
"""The shortest row of a target that says which of the tried combinations a kernel takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from etx_schema.dtypes import DTYPE_SETS

Kinds = tuple[str, ...]
UNTRIED = frozenset({"", "none"})
NUMBERS = frozenset({"Bool", "Int", "Double"})
Box = tuple[frozenset[str], ...]


def boxes(taken: set[Kinds], tried: set[Kinds]) -> list[Box]:
    """Return products of sets that hold all of `taken` and nothing else of `tried`.

    A set with `=2` holds what argument 2 is of, whatever that is.
    """
    if not taken:
        return []
    refused = tried - taken
    whole = projection(taken)
    if not any(inside(row, whole) for row in refused):
        return [whole]
    alike = equal_places(taken, whole)
    if alike != whole and not any(inside(row, alike) for row in refused):
        return [needed(alike, whole, refused)]
    best: list[Box] | None = None
    for place in range(len(whole)):
        if len(whole[place]) < 2:
            continue
        found = split(taken, tried, place)
        if best is None or len(found) < len(best):
            best = found
    assert best is not None
    return best


def split(taken: set[Kinds], tried: set[Kinds], place: int) -> list[Box]:
    """Join what the argument at `place` may be as long as the rest is a product."""
    groups: list[set[str]] = []
    for value in sorted({row[place] for row in taken}):
        for group in groups:
            both = group | {value}
            part = projection([row for row in taken if row[place] in both])
            if not any(inside(row, part) for row in tried - taken):
                group.add(value)
                break
        else:
            groups.append({value})
    found: list[Box] = []
    for group in groups:
        mine = {row for row in taken if row[place] in group}
        seen = {row for row in tried if row[place] in group}
        found += boxes(mine, seen) if len(groups) > 1 else [projection(mine)]
    return found


def equal_places(taken: set[Kinds], whole: Box) -> Box:
    """Return the product where arguments that are always of one dtype are said to be alike."""
    found = list(whole)
    for place in range(1, len(whole)):
        for first in range(place):
            both = [row for row in taken if row[place] != "none"]
            if both and len(whole[first]) > 1 and all(row[place] == row[first] for row in both):
                found[place] = frozenset({f"={first}"}) | (whole[place] & {"none"})
                break
    return tuple(found)


def needed(alike: Box, whole: Box, refused: set[Kinds]) -> Box:
    """Return the product with as few equalities as keep the `refused` out."""
    found = list(alike)
    for place in reversed(range(len(found))):
        kept, found[place] = found[place], whole[place]
        if any(inside(row, tuple(found)) for row in refused):
            found[place] = kept
    return tuple(found)


def projection(rows: Iterable[Kinds]) -> Box:
    return tuple(frozenset(column) for column in zip(*rows, strict=True))


def inside(row: Kinds, box: Box) -> bool:
    return all(
        value in allowed or any(f"={i}" in allowed and row[i] == value for i in range(len(row)))
        for value, allowed in zip(row, box, strict=True)
    )


def render(names: Sequence[str], box: Box, tried: Box) -> dict[str, str]:
    """Return a product by argument, in order, to the last of which it says something."""
    row = {
        name: spelled(names, kinds) if says(kinds, all_kinds) else ""
        for name, kinds, all_kinds in zip(names, box, tried, strict=True)
    }
    while row and not row[list(row)[-1]]:
        row.popitem()
    return row


def says(kinds: frozenset[str], tried: frozenset[str]) -> bool:
    """Tell whether a row names an argument: all tensors, and numbers of which not all are taken."""
    if tried & NUMBERS:
        return tried >= NUMBERS and kinds != tried
    return not tried <= UNTRIED


def spelled(names: Sequence[str], kinds: frozenset[str]) -> str:
    """Return dtypes as names of sets and of dtypes, the largest sets first."""
    words = [f"={name}" for i, name in enumerate(names) if f"={i}" in kinds]
    left = {kind for kind in kinds if kind and not kind.startswith("=")}
    for name, dtypes in DTYPE_SETS.items():
        if left.issuperset(dtypes):
            words.append(name)
            left -= set(dtypes)
    return " ".join(words + sorted(left))
