# SPDX-License-Identifier: BSD-3-Clause
"""What a kernel takes, as a target's row says it, and whether a call is within that.

`{}` takes all. `{"dtypes": ["float32"]}` lists dtypes of the (first) result. `{"arguments":
{"self": "real bool", "alpha": "", "other": "=self none", "out": "floating"}}` has the arguments
in their order: names of dtypes or of sets of them (`DTYPE_SETS`), `=NAME` for the dtype of an
argument before, `none` for one left out, `Bool`, `Int` and `Double` for numbers, "" for all.
Beside them bounds may stand, each of which must hold: `rank>=1` of a tensor, `items>=1` of a list,
`each>=0` of numbers in it, `value==False` of a number, `numel>=1` of a tensor's elements.
`{"either": [row, row]}` takes what any of them takes, `{"all": [row, row]}` what each does; `why`
in a row is said of what it does not take.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from etx_schema._generated.program import (
    Bool,
    BoolList,
    Double,
    DoubleList,
    ExecutionPlan,
    Int,
    IntList,
    KernelCall,
    Null,
    OptionalTensorList,
    Tensor,
    TensorList,
)
from etx_schema.dtypes import DTYPE_SETS, DTYPES, dtype_name
from etx_schema.errors import TargetError
from etx_schema.operator_names import out_dtype

Row = Mapping[str, Any]
Facts = Mapping[str, Sequence[float]]
NUMBERS = ("Bool", "Int", "Double")
KINDS = {Null: "none", Bool: "Bool", Int: "Int", Double: "Double"}
FACTS = ("rank", "numel", "items", "each", "value")
COMPARED = {">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne}
BOUND = re.compile(rf"({'|'.join(FACTS)})({'|'.join(COMPARED)})(-?\d+(?:\.\d+)?|True|False)")
_NAMES = {name for name, _ in DTYPES.values()}
_WORDS = {*_NAMES, *DTYPE_SETS, *NUMBERS, "none"}


@dataclass(frozen=True)
class Misfit:
    """An argument (\"\": the result) of a dtype or kind that is not among the `allowed` ones."""

    argument: str
    given: str
    allowed: tuple[str, ...]
    why: str = ""

    def __str__(self) -> str:
        return f"{self._text()} ({self.why})" if self.why else self._text()

    def _text(self) -> str:
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
    facts = [_facts(plan, index) for index in call.args]
    return misfit_of(row, kinds, out_dtype(plan, call), facts)


def misfit_of(
    row: Row,
    kinds: Sequence[Sequence[str]],
    result: str | None,
    facts: Sequence[Facts] = (),
) -> Misfit | None:
    """The same for arguments of these kinds: a dtype for each tensor, words as rows have them.

    `facts` are numbers that bounds speak of.
    """
    tried = [tuple(_all_misfits(each, kinds, result, facts)) for each in alternatives(row)]
    return min(tried, key=len)[0] if all(tried) else None


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
    if one == other or not one:
        return one
    if not other:
        return other
    if one.keys() == other.keys() == {"dtypes"}:
        return {"dtypes": list(dict.fromkeys((*one["dtypes"], *other["dtypes"])))}
    return {"either": [*alternatives(one), *alternatives(other)]}


def spelled(row: Row) -> str:
    """Return a row as a line of text."""
    if "all" in row:
        return " & ".join(map(spelled, row["all"]))
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
    every = row.get("all", [])
    if not (isinstance(arguments, dict) and isinstance(either, list) and isinstance(every, list)):
        raise TargetError(
            f"operators: {name}: expected an object 'arguments', lists 'either' and 'all'"
        )
    known = set(_WORDS)
    for argument, words in arguments.items():
        kinds, _ = _parted(words) if isinstance(words, str) else ([""], [])
        if not known.issuperset(kinds):
            raise TargetError(f"operators: {name}: {argument}: unknown dtypes in {words!r}")
        known.add(f"={argument}")
    for part in (*either, *every):
        check_row(name, part)


def _all_misfits(
    row: Row, kinds: Sequence[Sequence[str]], result: str | None, facts: Sequence[Facts]
) -> Iterator[Misfit]:
    yield from _misfits(row, kinds, result, facts)
    for part in row.get("all", ()):
        found = misfit_of(part, kinds, result, facts)
        if found is not None:
            yield found


def _misfits(
    row: Row, kinds: Sequence[Sequence[str]], result: str | None, facts: Sequence[Facts]
) -> Iterator[Misfit]:
    why = str(row.get("why", ""))
    if "dtypes" in row and result is not None and result not in row["dtypes"]:
        yield Misfit("", result, tuple(row["dtypes"]), why)
    seen: dict[str, str] = {}
    for i, (name, text) in enumerate(row.get("arguments", {}).items()):
        if i >= len(kinds):
            break
        words, bounds = _parted(text)
        allowed = _expanded(words, seen)
        wrong = [kind for kind in kinds[i] if kind not in allowed] if words else []
        if wrong:
            yield Misfit(name, wrong[0], tuple(dict.fromkeys(allowed)), why)
        for fact, compared, bound in bounds:
            for value in facts[i].get(fact, ()) if i < len(facts) else ():
                if not COMPARED[compared](value, bound):
                    limit = f"{fact} {compared} {bound:g}"
                    yield Misfit(name, f"{fact} {value:g}", (limit,), why)
        if kinds[i]:
            seen[name] = kinds[i][0]


@cache
def _parted(text: str) -> tuple[list[str], list[tuple[str, str, float]]]:
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


def _expanded(words: Sequence[str], seen: Mapping[str, str]) -> list[str]:
    found: list[str] = []
    for word in words:
        if word.startswith("="):
            found.append(seen.get(word[1:], word))
        else:
            found += DTYPE_SETS.get(word, (word,))
    return found


def _facts(plan: ExecutionPlan, index: int) -> Facts:
    """Return what bounds speak of: ranks of tensors, the length of a list, a number."""
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    if isinstance(value, Tensor):
        return {"rank": [len(value.sizes)], "numel": [math.prod(value.sizes)]}
    if isinstance(value, (TensorList, OptionalTensorList)):
        ranks = [r for item in value.items for r in _facts(plan, item).get("rank", ())]
        return {"items": [len(value.items)], "rank": ranks}
    if isinstance(value, IntList):
        each = [number for item in value.items for number in _facts(plan, item).get("value", ())]
        return {"items": [len(value.items)], "each": each}
    if isinstance(value, (BoolList, DoubleList)):
        return {"items": [len(value.items)], "each": [float(item) for item in value.items]}
    if isinstance(value, (Bool, Int, Double)):
        numbers = [getattr(value, f"{type(value).__name__.lower()}_val")]
        return {"value": [float(number) for number in numbers]}
    return {}


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
