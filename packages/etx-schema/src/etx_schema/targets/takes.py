# SPDX-License-Identifier: BSD-3-Clause
"""Is a call within what a target's row takes?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
from etx_schema.dtypes import DTYPE_SETS, dtype_name
from etx_schema.operator_names import out_dtype
from etx_schema.targets.rows import (
    COMPARED,
    LAYOUTS,
    Row,
    alternatives,
    fits_layout,
    in_rows,
    parted,
)

Facts = Mapping[str, Sequence[float]]
KINDS = {Null: "none", Bool: "Bool", Int: "Int", Double: "Double"}


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
    orders = [order for index in call.args for order in _orders(plan, index)]
    return misfit_of(row, kinds, out_dtype(plan, call), facts, orders)


def misfit_of(
    row: Row,
    kinds: Sequence[Sequence[str]],
    result: str | None,
    facts: Sequence[Facts] = (),
    orders: Sequence[Sequence[int]] = (),
) -> Misfit | None:
    """The same for arguments of these kinds: a dtype for each tensor, words as rows have them.

    `facts` are numbers that bounds speak of, `orders` the dim orders of all tensors.
    """
    tried = [tuple(_all_misfits(each, kinds, result, facts, orders)) for each in alternatives(row)]
    return min(tried, key=len)[0] if all(tried) else None


def _all_misfits(
    row: Row,
    kinds: Sequence[Sequence[str]],
    result: str | None,
    facts: Sequence[Facts],
    orders: Sequence[Sequence[int]],
) -> Iterator[Misfit]:
    yield from _misfits(row, kinds, result, facts)
    for part in row.get("all", ()):
        found = misfit_of(part, kinds, result, facts, orders)
        if found is not None:
            yield found
    odd = next((order for order in orders if not in_rows(order)), None)
    if odd is not None and not fits_layout(row.get("layout"), orders):
        why = str(row.get("why", ""))
        yield Misfit("", f"dim order {list(odd)}", (LAYOUTS[row["layout"]],), why)


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
        words, bounds = parted(text)
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
            seen[name] = kinds[i][0] if len(set(kinds[i])) == 1 else "one dtype"


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


def _orders(plan: ExecutionPlan, index: int) -> Iterator[tuple[int, ...]]:
    """Yield the dim order of a tensor, or those of a list."""
    value = plan.values[index].val if 0 <= index < len(plan.values) else None
    if isinstance(value, Tensor):
        yield tuple(value.dim_order or range(len(value.sizes)))
    elif isinstance(value, (TensorList, OptionalTensorList)):
        for item in value.items:
            yield from _orders(plan, item)


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
