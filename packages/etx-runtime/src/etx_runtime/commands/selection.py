# SPDX-License-Identifier: BSD-3-Clause
"""Which results `etx run --values` records, and of which instructions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from etx_schema import EtxError, read_pte
from etx_schema.calls import choose_method
from etx_schema.inspect.describe_method import Method

from etx_runtime.errors import InputError
from etx_runtime.recorder import VALUES, Values


@dataclass(frozen=True)
class Selection:
    """What is kept, and ranges of instructions, or none for all."""

    values: Values
    instructions: tuple[tuple[int, int], ...] = ()


def select_values(text: str, file: str, method: str | None) -> Selection:
    """Read what `--values` says: a kind of value, modules and ranges, separated by commas.

    Modules are those that the file names (`etx/debug`), with all that is in them. Errors:
    InputError for a module or range that the method has not.
    """
    kinds: list[Values] = []
    places: list[str] = []
    for word in text.split(","):
        kind = next((value for value in VALUES if value == word), None)
        if kind is None:
            places.append(word)
        else:
            kinds.append(kind)
    if len(kinds) > 1:
        raise InputError(f"--values {text}: give one of {', '.join(VALUES)}")
    kind = kinds[0] if kinds else "all"
    if places and kind in ("none", "outputs"):
        raise InputError(f"--values {text}: {kind} are not those of instructions; use all or stats")
    if not places:
        return Selection(kind)
    modules = _modules(file, method)
    found = [span for place in places for span in _place(place, modules)]
    return Selection(kind, tuple(found))


def _modules(file: str, method: str | None) -> list[list[str]]:
    """Return the modules of each instruction; of a delegate those of what is in it."""
    pte = read_pte(file)
    plans = {plan.name or "": plan for plan in pte.program.execution_plan}
    try:
        method = choose_method(plans, method)
    except EtxError as error:
        raise InputError(str(error)) from error
    found = []
    for row in Method(pte, plans[method]).instructions():
        origins = [row, *row.get("inner", {}).values()]
        found.append([str(origin["module"]) for origin in origins if origin.get("module")])
    return found


def _place(text: str, modules: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if match:
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < len(modules):
            raise InputError(
                f"--values {text}: expected instructions from 0 to {len(modules) - 1}, "
                f"the first not after the last"
            )
        return [(first, last)]
    inside = text + "."
    found = [
        (index, index)
        for index, names in enumerate(modules)
        if any(name == text or name.startswith(inside) for name in names)
    ]
    if not found:
        tops = dict.fromkeys(name.partition(".")[0] for names in modules for name in names)
        known = f"it has: {', '.join(tops)}" if tops else "the file names no modules"
        raise InputError(
            f"--values {text}: not one of {', '.join(VALUES)}, a range such as 3-7, or a module "
            f"with instructions ({known})"
        )
    return found
