# SPDX-License-Identifier: BSD-3-Clause
"""What a kernel takes, as a target's row says it, and whether a call is within that.

`{}` takes all. `{"dtypes": ["float32"]}` lists dtypes of the (first) result. `{"arguments":
{"self": "real bool", "alpha": "", "other": "=self none", "out": "floating"}}` has the arguments
in their order: names of dtypes or of sets of them (`DTYPE_SETS`), `=NAME` for the dtype of an
argument before, `none` for one left out, `Bool`, `Int` and `Double` for numbers, "" for all.
`{"either": [row, row]}` takes what any of them takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from etx_schema._generated.program import (
    Bool,
    Double,
    ExecutionPlan,
    Int,
    KernelCall,
    Null,
    OptionalTensorList,
    Tensor,
    TensorList,
)
from etx_schema.calls import out_dtype
from etx_schema.dtypes import DTYPE_SETS, DTYPES, dtype_name
from etx_schema.errors import TargetError

Row = Mapping[str, Any]
NUMBERS = ("Bool", "Int", "Double")
KINDS = {Null: "none", Bool: "Bool", Int: "Int", Double: "Double"}
_NAMES = {name for name, _ in DTYPES.values()}
_WORDS = {*_NAMES, *DTYPE_SETS, *NUMBERS, "none"}


@dataclass(frozen=True)
class Misfit:
    """An argument (\"\": the result) of a dtype or kind that is not among the `allowed` ones."""

    argument: str
    given: str
    allowed: tuple[str, ...]

    def __str__(self) -> str:
        of = f"{self.argument} of " if self.argument else ""
        allowed = ", ".join(self.allowed) or "nothing"
        if not self.argument:
            return f"for {allowed}, not for {self.given}"
        if self.given == "none":
            return f"with {of}{allowed}, not without it"
        return f"with {of}{allowed}, not of {self.given}"


def misfit(row: Row, plan: ExecutionPlan, call: KernelCall) -> Misfit | None:
    """Return why `row` does not take `call`, None when it does."""
    kinds = [tuple(_kinds(plan, index)) for index in call.args]
    return misfit_of(row, kinds, out_dtype(plan, call))


def misfit_of(row: Row, kinds: Sequence[Sequence[str]], result: str | None) -> Misfit | None:
    """The same for arguments of these kinds: a dtype for each tensor, words as rows have them."""
    found = [tuple(_misfits(each, kinds, result)) for each in alternatives(row)]
    if not all(found):
        return None
    return min(found, key=len)[0]


def alternatives(row: Row) -> Sequence[Row]:
    """Return the rows of which one must take a call."""
    if "either" not in row:
        return [row]
    return [each for part in row["either"] for each in alternatives(part)]


def joined(one: Row, other: Row) -> Row:
    """Return a row that takes what either takes."""
    if one == other or not one:
        return one
    if not other:
        return other
    if one.keys() == other.keys() == {"dtypes"}:
        return {"dtypes": list(dict.fromkeys((*one["dtypes"], *other["dtypes"])))}
    return {"either": [*alternatives(one), *alternatives(other)]}


def spelled(row: Row) -> str:
    """Return a row as a line of text."""
    texts = []
    for each in alternatives(row):
        arguments = each.get("arguments", {})
        dtypes = [", ".join(each["dtypes"])] if "dtypes" in each else []
        texts.append("; ".join(dtypes + [f"{n} {w}" for n, w in arguments.items() if w]))
    return " | ".join(texts) if all(texts) else "every dtype"


def check_row(name: str, row: object) -> None:
    """Raise TargetError naming what is wrong in the row of operator `name`."""
    if not isinstance(row, dict):
        raise TargetError(f"operators: {name}: expected an object")
    dtypes = row.get("dtypes", [])
    if not isinstance(dtypes, list) or not _NAMES.issuperset(map(str, dtypes)):
        unknown = set(map(str, dtypes)) - _NAMES if isinstance(dtypes, list) else dtypes
        raise TargetError(f"operators: {name}: unknown dtypes {unknown}")
    arguments, either = row.get("arguments", {}), row.get("either", [])
    if not isinstance(arguments, dict) or not isinstance(either, list):
        raise TargetError(f"operators: {name}: expected an object 'arguments', a list 'either'")
    known = set(_WORDS)
    for argument, words in arguments.items():
        if not isinstance(words, str) or not known.issuperset(words.split()):
            raise TargetError(f"operators: {name}: {argument}: unknown dtypes in {words!r}")
        known.add(f"={argument}")
    for part in either:
        check_row(name, part)


def _misfits(row: Row, kinds: Sequence[Sequence[str]], result: str | None) -> Iterator[Misfit]:
    if "dtypes" in row and result is not None and result not in row["dtypes"]:
        yield Misfit("", result, tuple(row["dtypes"]))
    seen: dict[str, str] = {}
    for (name, words), given in zip(row.get("arguments", {}).items(), kinds, strict=False):
        allowed = _expanded(words.split(), seen)
        wrong = [kind for kind in given if kind not in allowed] if words else []
        if wrong:
            yield Misfit(name, wrong[0], tuple(dict.fromkeys(allowed)))
        if given:
            seen[name] = given[0]


def _expanded(words: Sequence[str], seen: Mapping[str, str]) -> list[str]:
    found: list[str] = []
    for word in words:
        if word.startswith("="):
            found.append(seen.get(word[1:], word))
        else:
            found += DTYPE_SETS.get(word, (word,))
    return found


def _kinds(plan: ExecutionPlan, index: int) -> Iterator[str]:
    """Yield the dtypes of a tensor or of those of a list, or the kind of a number."""
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    if isinstance(value, Tensor):
        yield dtype_name(value.scalar_type)
    elif isinstance(value, (TensorList, OptionalTensorList)):
        for item in value.items:
            if item >= 0:
                yield from _kinds(plan, item)
    elif type(value) in KINDS:
        yield KINDS[type(value)]
