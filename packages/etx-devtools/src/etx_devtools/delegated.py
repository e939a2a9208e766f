# SPDX-License-Identifier: BSD-3-Clause
"""Which parts of a delegate its events are of, by their ids or by kind and order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["handles_of_events"]


def handles_of_events(
    names: Sequence[str], ids: Mapping[str, Sequence[int]]
) -> dict[str, list[int]]:
    """Return the debug handles of a call's events, whose ids are `names` in their order.

    An event whose id the compiler knew has its handles. Else events and ids are of the same
    operators in the same order, such as ``Convolution (NHWC, F32) IGEMM #2`` and
    ``Convolution @5``: they are aligned by kind, which is before a bracket, # or @, and ids are
    in the order of the numbers that end them. What has no event was fused into the one before it,
    whose handles it joins.
    """
    if any(name in ids for name in names):
        return {name: list(ids[name]) for name in names if name in ids}
    known = sorted(ids, key=_number)
    found: dict[str, list[int]] = {name: [] for name in names}
    rows = _aligned([_kind(name) for name in known], [_kind(name) for name in names])
    for parts, events in rows:
        for event in events:
            found[names[event]] += [handle for part in parts for handle in ids[known[part]]]
    return {name: list(dict.fromkeys(handles)) for name, handles in found.items() if handles}


def common_module(modules: Iterable[str]) -> str:
    """Return the module that holds all of these."""
    paths = [module.split(".") for module in modules]
    common = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return ".".join(common)


def _kind(name: str) -> str:
    return re.split(r" *[(#@]", name, maxsplit=1)[0]


def _number(name: str) -> int:
    digits = name.rpartition("@")[2]
    return int(digits) if digits.isdecimal() else 0


def _aligned(parts: list[str], events: list[str]) -> Iterable[tuple[Sequence[int], Sequence[int]]]:
    """Yield indices of parts and of the events that they have."""
    if len(parts) == len(events):
        yield from (([i], [i]) for i in range(len(parts)))
        return
    part, event = -1, -1
    for next_part, next_event in [*_anchors(parts, events), (len(parts), len(events))]:
        between = range(part + 1, next_part)
        if event + 1 < next_event:
            yield between, range(event + 1, next_event)
        elif event >= 0:
            yield between, [event]
        if next_part < len(parts):
            yield [next_part], [next_event]
        part, event = next_part, next_event


def _anchors(parts: list[str], events: list[str]) -> list[tuple[int, int]]:
    """Return pairs of kinds that are as often on both sides, in rising order."""
    places: dict[str, list[int]] = {}
    for place, kind in enumerate(parts):
        places.setdefault(kind, []).append(place)
    counts = Counter(events)
    alike = {kind: iter(found) for kind, found in places.items() if counts[kind] == len(found)}
    anchors: list[tuple[int, int]] = []
    for event, kind in enumerate(events):
        part = next(alike[kind]) if kind in alike else -1
        if part > (anchors[-1][0] if anchors else -1):
            anchors.append((part, event))
    return anchors
