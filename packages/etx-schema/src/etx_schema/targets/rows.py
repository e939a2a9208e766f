# SPDX-License-Identifier: BSD-3-Clause
"""The rows of targets: what a kernel takes.

`{}` takes all. `{"dtypes": ["float32"]}` lists dtypes of the (first) result. `{"arguments":
{"self": "real bool", "alpha": "", "other": "=self none", "out": "floating"}}` has the arguments
in their order: names of dtypes or of sets of them (`DTYPE_SETS`), `=NAME` for the dtype of an
argument before, `none` for one left out, `Bool`, `Int` and `Double` for numbers, "" for all.
Beside them bounds may stand, each of which must hold: `rank>=1` of a tensor, `items>=1` of a list,
`each>=0` of numbers in it, `value==False` of a number, `numel>=1` of a tensor's elements.
`{"layout": "rows"}` takes only tensors in rows, `"one"` those of one dim order (rows, or channels
last for all), `"ends"` a first tensor and a result of one dim order and others in rows.
`{"either": [row, row]}` takes what any of them takes, `{"all": [row, row]}` what each does; `why`
in a row is said of what it does not take. `{"in_place": true}` lets the result lie on an argument
of its dtype, sizes and dim order; `false` in one row of `all` takes that back.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from etx_schema.dtypes import DTYPE_SETS, DTYPES
from etx_schema.errors import TargetError

Row = Mapping[str, Any]
IN_PLACE = "in_place"
NUMBERS = ("Bool", "Int", "Double")
FACTS = ("rank", "numel", "items", "each", "value")
COMPARED = {">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne}
BOUND = re.compile(rf"({'|'.join(FACTS)})({'|'.join(COMPARED)})(-?\d+(?:\.\d+)?|True|False)")
LAYOUTS = {
    "rows": "tensors in rows",
    "one": "tensors of one dim order",
    "ends": "a result of its first tensor's dim order",
}
CHANNELS_LAST = (0, 2, 3, 1)
_NAMES = {name for name, _ in DTYPES.values()}
_WORDS = {*_NAMES, *DTYPE_SETS, *NUMBERS, "none"}


def narrowed(one: Row, other: Row) -> Row:
    """Return a row that takes what both take."""
    return {"all": [one, other]} if one and other else one or other


def alternatives(row: Row) -> Sequence[Row]:
    """Return the rows of which one must take a call."""
    if "either" not in row:
        return [row]
    return [each for part in row["either"] for each in alternatives(part)]


def joined(one: Row, other: Row) -> Row:
    """Return a row that takes what either takes."""
    if one == other:
        return one
    row = _joined(*({k: v for k, v in each.items() if k != IN_PLACE} for each in (one, other)))
    return {IN_PLACE: True, **row} if in_place(one) and in_place(other) else row


def _joined(one: Row, other: Row) -> Row:
    if one == other or not one:
        return one
    if not other:
        return other
    if one.keys() == other.keys() == {"dtypes"}:
        return {"dtypes": list(dict.fromkeys((*one["dtypes"], *other["dtypes"])))}
    return {"either": [*alternatives(one), *alternatives(other)]}


def in_place(row: Row) -> bool:
    """Whether the result may lie on an argument of its dtype, sizes and dim order."""
    stated = list(_stated(row))
    return bool(stated) and all(stated)


def _stated(row: Row) -> Iterator[bool]:
    if IN_PLACE in row:
        yield row[IN_PLACE]
    for part in row.get("all", ()):
        yield from _stated(part)


def spelled(row: Row) -> str:
    """Return a row as a line of text."""
    if "all" in row:
        parts = [spelled(part) for part in row["all"] if part.keys() != {IN_PLACE}]
        return " & ".join(parts) or "every dtype"
    texts = []
    for each in alternatives(row):
        arguments = each.get("arguments", {})
        dtypes = [", ".join(each["dtypes"])] if "dtypes" in each else []
        dtypes += [LAYOUTS[each["layout"]]] if "layout" in each else []
        texts.append("; ".join(dtypes + [f"{n} {w}" for n, w in arguments.items() if w]))
    return " | ".join(texts) if all(texts) else "every dtype"


def layout_of(row: Row) -> str | None:
    """Return the layout that a row asks for, or one of the rows that must all hold."""
    if "layout" in row:
        return str(row["layout"])
    return next(filter(None, map(layout_of, row.get("all", ()))), None)


def fits_layout(layout: str | None, orders: Sequence[Sequence[int]]) -> bool:
    """Tell whether a kernel of that layout takes tensors of these dim orders, results last."""
    if layout is None or all(map(in_rows, orders)):
        return True
    ends = {"rows": (), "one": orders, "ends": (orders[0], orders[-1])}[layout]
    if not ends or any(tuple(order) != CHANNELS_LAST for order in ends):
        return False
    return all(tuple(order) == CHANNELS_LAST or in_rows(order) for order in orders)


def in_rows(order: Sequence[int]) -> bool:
    """Tell whether dimensions lie in memory as they are numbered."""
    return list(order) == sorted(order)


def check_row(name: str, row: object) -> None:
    """Raise TargetError naming what is wrong in the row of operator `name`."""
    if not isinstance(row, dict):
        raise TargetError(f"operators: {name}: expected an object")
    dtypes = row.get("dtypes", [])
    if not isinstance(dtypes, list) or not _NAMES.issuperset(map(str, dtypes)):
        unknown = set(map(str, dtypes)) - _NAMES if isinstance(dtypes, list) else dtypes
        raise TargetError(f"operators: {name}: unknown dtypes {unknown}")
    if row.get("layout", "rows") not in LAYOUTS:
        expected = ", ".join(LAYOUTS)
        raise TargetError(f"operators: {name}: layout {row['layout']!r}; expected {expected}")
    arguments, either = row.get("arguments", {}), row.get("either", [])
    every = row.get("all", [])
    if not (isinstance(arguments, dict) and isinstance(either, list) and isinstance(every, list)):
        raise TargetError(
            f"operators: {name}: expected an object 'arguments', lists 'either' and 'all'"
        )
    known = set(_WORDS)
    for argument, words in arguments.items():
        kinds, _ = parted(words) if isinstance(words, str) else ([""], [])
        if not known.issuperset(kinds):
            raise TargetError(f"operators: {name}: {argument}: unknown dtypes in {words!r}")
        known.add(f"={argument}")
    if not isinstance(row.get(IN_PLACE, False), bool):
        raise TargetError(f"operators: {name}: {IN_PLACE!r}: expected true or false")
    for part in (*either, *every):
        check_row(name, part)


@cache
def parted(text: str) -> tuple[list[str], list[tuple[str, str, float]]]:
    """Return the dtypes and kinds of an argument's words, and its bounds."""
    words, bounds = [], []
    for word in text.split():
        found = BOUND.fullmatch(word)
        if found is None:
            words.append(word)
        else:
            number = {"True": 1.0, "False": 0.0}.get(found[3])
            bounds.append((found[1], found[2], float(found[3]) if number is None else number))
    return words, bounds
