# SPDX-License-Identifier: BSD-3-Clause
"""What differs between two programs, each change once."""

from __future__ import annotations

import gc
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from etx_schema import Blob, EtxError, ExecutionPlan, ProgramError, PteFile, program_of, read_pte
from etx_schema.errors import naming
from etx_schema.files import PathLike, load_bytes

from etx_devtools.diff.match import moved, pair
from etx_devtools.diff.rows import Row, rows_of
from etx_devtools.diff.weights import WeightChange, compare_weights

__all__ = ["Change", "Difference", "MethodDifference", "diff"]


OWNERS = ("added", "delegated", "fused", "removed", "replaced", "undelegated")
"""Changes that say of weights, too: those that nothing else reads are counted there."""
FEW = 3
"""Of named data that only one file has, more than these are counted."""


@dataclass(frozen=True)
class Change:
    """One change of instructions: `added`, `removed`, `changed`, `replaced`, `moved`, `fused`,
    `delegated`, `undelegated` or `renamed`; `before` and `after` are indices of the instructions
    it concerns.
    """

    kind: str
    text: str
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)


@dataclass
class MethodDifference:
    """What differs in a method that both files have."""

    name: str
    instructions: tuple[int, int]
    arenas: tuple[list[int], list[int]]
    signature: list[str]
    changes: list[Change]
    equal_weights: int
    weights: list[WeightChange]
    pairs: list[tuple[Row, Row]] = field(default_factory=list, repr=False)


@dataclass
class Difference:
    """What differs between two files; numbers are (before, after)."""

    files: tuple[str, str]
    sizes: tuple[int, int]
    weight_bytes: tuple[int, int]
    operators: dict[str, tuple[int, int]]
    delegates: dict[str, tuple[int, int]]
    named_data: list[str]
    methods: list[MethodDifference]
    only_before: list[str]
    only_after: list[str]
    run: dict[str, Any] | None = None

    @property
    def is_empty(self) -> bool:
        """True where the programs are the same, though the files may lie differently."""
        differs = self.only_before or self.only_after or self.named_data or self.delegates
        return not differs and not any(
            m.changes or m.weights or m.signature or m.arenas[0] != m.arenas[1]
            for m in self.methods
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        bare = replace(self, methods=[replace(each, pairs=[]) for each in self.methods])
        document = asdict(bare) | {"same": self.is_empty}
        for method in document["methods"]:
            del method["pairs"]
        return document


def diff(before: PathLike | Blob, after: PathLike | Blob) -> Difference:
    """Compare two `.pte` or `.bpte`, by path or bytes, instruction by origin."""
    with naming(_name(before), _name(after)):
        return _diff(before, after)


def _diff(before: PathLike | Blob, after: PathLike | Blob) -> Difference:
    one, other = _read(before), _read(after)
    plans = [
        {plan.name or "": plan for plan in side.program.execution_plan} for side in (one, other)
    ]
    rows = []
    for source, pte, side in zip((before, after), (one, other), plans, strict=True):
        with naming(_name(source)):
            rows.append({name: rows_of(pte, plan) for name, plan in side.items()})
    methods = [
        _method((one, other), (plan, plans[1][name]), (rows[0][name], rows[1][name]))
        for name, plan in plans[0].items()
        if name in plans[1]
    ]
    return Difference(
        files=(_name(before), _name(after)),
        sizes=(_size(before), _size(after)),
        weight_bytes=(_bytes(one), _bytes(other)),
        operators=_unlike(_operators(rows[0]), _operators(rows[1])),
        delegates=_unlike(_delegates(one), _delegates(other)),
        named_data=list(_named_data(one, other)),
        methods=methods,
        only_before=[name for name in plans[0] if name not in plans[1]],
        only_after=[name for name in plans[1] if name not in plans[0]],
    )


def _read(source: PathLike | Blob) -> PteFile:
    collects = gc.isenabled()
    gc.disable()  # a million new objects, and no garbage among them
    try:
        return read_pte(source)
    except ProgramError as error:
        raise EtxError(f"{_name(source)}: {error}") from error
    finally:
        if collects:
            gc.enable()


def _name(source: PathLike | Blob) -> str:
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else "bytes"


def _size(source: PathLike | Blob) -> int:
    return len(program_of(load_bytes(source)))


def _bytes(pte: PteFile) -> int:
    return sum(len(blob) for blob in pte.constants)


def _operators(rows: dict[str, list[Row]]) -> Counter[str]:
    found = (row.operator for side in rows.values() for row in side)
    return Counter(operator for operator in found if "::" in operator)


def _delegates(pte: PteFile) -> Counter[str]:
    return Counter(each.id or "" for p in pte.program.execution_plan for each in p.delegates)


def _unlike(one: Counter[str], other: Counter[str]) -> dict[str, tuple[int, int]]:
    names = sorted(one.keys() | other.keys())
    return {name: (one[name], other[name]) for name in names if one[name] != other[name]}


def _named_data(one: PteFile, other: PteFile) -> Iterator[str]:
    tables = [
        {
            key: memoryview(b.data)
            for key, b in side.named_data.items()
            if not key.startswith("etx/")
        }
        for side in (one, other)
    ]
    for key in sorted(tables[0].keys() & tables[1].keys()):
        before, after = (table[key] for table in tables)
        if before != after:
            yield f"{key}: {len(before):,} bytes -> {len(after):,} bytes"
    sides = ("removed", tables[0], tables[1]), ("added", tables[1], tables[0])
    for word, table, rest in sides:
        keys = sorted(table.keys() - rest.keys())
        size = sum(len(table[key]) for key in keys)
        if len(keys) > FEW:
            yield f"{word}: {len(keys)} of {size:,} bytes"
        else:
            yield from (f"{key}: {word}, {len(table[key]):,} bytes" for key in keys)


def _method(
    files: tuple[PteFile, PteFile],
    plans: tuple[ExecutionPlan, ExecutionPlan],
    rows: tuple[list[Row], list[Row]],
) -> MethodDifference:
    before, after = plans
    pairs = pair(*rows)
    equal, weights = compare_weights(*files, rows, pairs)
    changes, weights = _with_weights(list(_changes(rows[0], rows[1], pairs)), weights)
    signature = []
    for word in ("inputs", "outputs"):
        sides = [_types(before, getattr(before, word)), _types(after, getattr(after, word))]
        if sides[0] != sides[1]:
            signature.append(f"{word}: {', '.join(sides[0])} -> {', '.join(sides[1])}")
    return MethodDifference(
        name=before.name or "",
        instructions=(len(rows[0]), len(rows[1])),
        arenas=(before.non_const_buffer_sizes[1:], after.non_const_buffer_sizes[1:]),
        signature=signature,
        changes=changes,
        equal_weights=equal,
        weights=weights,
        pairs=pairs,
    )


def _with_weights(
    changes: list[Change], weights: list[WeightChange]
) -> tuple[list[Change], list[WeightChange]]:
    """Count weights that only changed instructions read with these; return the others."""
    owner: tuple[dict[int, int], dict[int, int]] = {}, {}
    for place, change in enumerate(changes):
        if change.kind in OWNERS:
            owner[0].update(dict.fromkeys(change.before, place))
            owner[1].update(dict.fromkeys(change.after, place))
    counts: Counter[int] = Counter()
    left: list[WeightChange] = []
    for weight in weights:
        sides = zip(owner, weight.readers, strict=True)
        found = {own.get(index) for own, readers in sides for index in readers}
        only = next(iter(found)) if len(found) == 1 else None
        if only is None:
            left.append(weight)
        else:
            counts[only] += 1
    for place, count in counts.items():
        text = f"{changes[place].text}, with {count} weight{'s' * (count != 1)}"
        changes[place] = replace(changes[place], text=text)
    return changes, left


def _types(plan: ExecutionPlan, indices: list[int]) -> list[str]:
    from etx_devtools.bundled_program.signature import describe

    count = len(plan.values)
    return [describe(plan.values[i].val) if 0 <= i < count else "nothing" for i in indices]


def _changes(before: list[Row], after: list[Row], pairs: list[tuple[Row, Row]]) -> Iterator[Change]:
    known = {old.index for old, _ in pairs}, {new.index for _, new in pairs}
    removed = [row for row in before if row.index not in known[0]]
    added = [row for row in after if row.index not in known[1]]
    yield from _delegated(removed, added, "delegated")
    yield from _delegated(added, removed, "undelegated")
    yield from _fused(removed, {old.index: new for old, new in pairs}, before)
    yield from _grouped(removed, "removed")
    yield from _grouped(added, "added")
    yield from _renamed(pairs)
    yield from _replaced(pairs)
    yield from _changed(pairs)
    for old, new in moved(pairs):
        text = f"{old.operator} ({old.place}): {old.index} -> {new.index}"
        yield Change("moved", text, [old.index], [new.index])


def _delegated(gone: list[Row], come: list[Row], kind: str) -> Iterator[Change]:
    """Take instructions that a delegate of the other file holds from `gone`, and it from `come`."""
    for call in [row for row in come if row.inner]:
        inside = Counter(call.inner)
        same = _take(gone, inside, lambda row: (row.module, row.origin))
        other: Counter[str] = Counter()  # decomposed otherwise, of the same module
        for (module, _), count in inside.items():
            other[module] += count
        own = sorted(row.index for row in same + _take(gone, other, lambda row: row.module))
        if own:
            come.remove(call)
            word = "into" if kind == "delegated" else "out of"
            text = f"{_count(len(own))} {word} {call.operator}"
            sides = (own, [call.index]) if kind == "delegated" else ([call.index], own)
            yield Change(kind, text, *sides)


def _take(gone: list[Row], inside: Counter[Any], key: Callable[[Row], Hashable]) -> list[Row]:
    """Take from `gone` as many rows of each key as `inside` counts."""
    taken: list[Row] = []
    left: list[Row] = []
    for row in gone:
        found = key(row)
        (taken if inside[found] > 0 else left).append(row)
        inside[found] -= 1 if inside[found] > 0 else 0
    gone[:] = left
    return taken


def _fused(removed: list[Row], partner: dict[int, Row], before: list[Row]) -> Iterator[Change]:
    """Take what became other weights of what it reads, such as batch norms, from `removed`."""
    for row in list(removed):
        into = [before[i] for i in row.producers if i in partner and before[i].constants]
        if len(row.producers) != 1 or not into or not row.constants:
            continue
        new = partner[into[0].index]
        removed.remove(row)
        text = f"{row.operator} ({row.place}) into {new.operator} ({new.place})"
        yield Change("fused", text, [into[0].index, row.index], [new.index])


def _grouped(rows: list[Row], kind: str) -> Iterator[Change]:
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.operator, row.module].append(row)
    for (operator, _), group in groups.items():
        places = [row.index for row in group]
        times = f", {len(group)} times" if len(group) > 1 else ""
        text = f"{operator} ({group[0].place}){times}"
        yield Change(kind, text, *((places, []) if kind == "removed" else ([], places)))


def _renamed(pairs: list[tuple[Row, Row]]) -> Iterator[Change]:
    groups: dict[tuple[str, str], list[tuple[Row, Row]]] = defaultdict(list)
    for old, new in pairs:
        if old.module != new.module:
            groups[_stems(old.module, new.module)].append((old, new))
    for (old_name, new_name), group in groups.items():
        text = f"module {old_name or '(root)'} is {new_name or '(root)'}: {_count(len(group))}"
        sides = [old.index for old, _ in group], [new.index for _, new in group]
        yield Change("renamed", text, *sides)


def _stems(old: str, new: str) -> tuple[str, str]:
    """Return both names up to the last part in which they differ."""
    one, other = old.split("."), new.split(".")
    while len(one) > 1 and len(other) > 1 and one[-1] == other[-1]:
        one.pop()
        other.pop()
    return ".".join(one), ".".join(other)


def _replaced(pairs: list[tuple[Row, Row]]) -> Iterator[Change]:
    groups: dict[tuple[str, str], list[tuple[Row, Row]]] = defaultdict(list)
    for old, new in pairs:
        if old.operator != new.operator:
            groups[old.operator, new.operator].append((old, new))
    for (before, after), group in groups.items():
        times = f", {len(group)} times" if len(group) > 1 else ""
        text = f"{before} by {after} ({group[0][1].place}{times})"
        yield Change("replaced", text, [old.index for old, _ in group], [n.index for _, n in group])


def _changed(pairs: list[tuple[Row, Row]]) -> Iterator[Change]:
    groups: dict[str, list[tuple[Row, Row]]] = defaultdict(list)
    for old, new in pairs:
        if old.operator != new.operator or old.arguments == new.arguments:
            continue
        if len(old.arguments) != len(new.arguments):
            parts = f"{len(old.arguments)} -> {len(new.arguments)} arguments"
        else:
            both = enumerate(zip(old.arguments, new.arguments, strict=True))
            parts = "; ".join(f"argument {n}: {a} -> {b}" for n, (a, b) in both if a != b)
        groups[f"{new.operator} ({new.place}): {parts}"].append((old, new))
    for text, group in groups.items():
        times = f" ({len(group)} times)" if len(group) > 1 else ""
        sides = [old.index for old, _ in group], [new.index for _, new in group]
        yield Change("changed", text + times, *sides)


def _count(number: int) -> str:
    return f"{number} instruction{'s' * (number != 1)}"
