# SPDX-License-Identifier: BSD-3-Clause
"""The lines of a profile: by operator, by module, by source line, by instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from etx_schema import EtxError

from etx_devtools.percentiles import median, percentile
from etx_devtools.profile.profile import Profile, Step
from etx_devtools.profile.work import SHORTEST

VIEWS = ("operator", "module", "line", "instruction")
UNKNOWN = "(unknown)"


@dataclass(frozen=True)
class Line:
    """Milliseconds of an execution, as percentiles; `own_ms` differs where a module has children.

    `depth` is how far in a name stands: modules in modules, parts in their delegate.
    """

    name: str
    calls: int
    ms: float
    share: float
    p10_ms: float
    p90_ms: float
    depth: int = 0
    own_ms: float | None = None
    module: str | None = None
    source: str | None = None
    shape: str = ""
    flop: int | None = None
    bytes: int | None = None
    gflop_s: float | None = None
    gb_s: float | None = None
    of_peak: float | None = None
    """The share of what this machine can: of its FLOP or of its bytes a second, the larger."""


def lines(profile: Profile, view: str = "operator") -> list[Line]:
    """Return the lines of a view; all but modules and instructions the slowest first."""
    makers: dict[str, Callable[[Profile], list[Line]]] = {
        "operator": lambda p: list(_grouped(p, lambda step: step.name)),
        "line": lambda p: list(_grouped(_opened(p), lambda step: step.source or UNKNOWN)),
        "module": lambda p: _modules(_opened(p)),
        "instruction": _instructions,
    }
    if view not in makers:
        raise EtxError(f"unknown view {view!r}; expected one of {', '.join(VIEWS)}")
    return makers[view](profile)


def _opened(profile: Profile) -> Profile:
    """Return the profile with what is known in delegates as instructions beside the rest of them.

    What happens at the same time in several threads may take longer than its delegate: the rest is
    then 0.
    """
    steps: list[Step] = []
    for step in profile.steps:
        known = [part for part in step.parts.values() if part.is_known]
        steps += [
            Step(step.index, p.name, step.text, p.module, p.source, "", p.ms, step.calls)
            for p in known
        ]
        inside = _sums([part.ms for part in known]) if known else [0.0] * len(step.ms)
        rest = [max(0.0, whole - part) for whole, part in zip(step.ms, inside, strict=True)]
        others = {name: part for name, part in step.parts.items() if not part.is_known}
        steps.append(replace(step, ms=rest, parts=others) if known else step)
    return replace(profile, steps=steps)


def _line(profile: Profile, name: str, calls: int, times: Sequence[float], depth: int = 0) -> Line:
    ms = median(times)
    total = profile.total_ms
    share = ms / total if total else 0.0
    return Line(name, calls, ms, share, percentile(times, 10), percentile(times, 90), depth)


def _sums(columns: Sequence[Sequence[float]]) -> list[float]:
    return [sum(times) for times in zip(*columns, strict=True)]


def _grouped(profile: Profile, key: Callable[[Step], str]) -> Iterator[Line]:
    groups: dict[str, list[Step]] = {}
    for step in profile.steps:
        groups.setdefault(key(step), []).append(step)
    found = []
    for name, steps in groups.items():
        times = _sums([step.ms for step in steps])
        found.append((_line(profile, name, sum(s.calls for s in steps), times), steps))
    for line, steps in sorted(found, key=lambda pair: -pair[0].ms):
        yield line
        yield from _parts(profile, steps)


def _parts(profile: Profile, steps: Sequence[Step]) -> Iterator[Line]:
    """Yield what delegates tell of their inside, a line for each name."""
    names: dict[str, list[list[float]]] = {}
    for step in steps:
        for part in step.parts.values():
            names.setdefault(part.name, []).append(part.ms)
    found = [_line(profile, name, len(all_), _sums(all_), 1) for name, all_ in names.items()]
    yield from sorted(found, key=lambda line: -line.ms)


def _modules(profile: Profile) -> list[Line]:
    """A tree in the order of execution; a module's time includes that of the modules in it."""
    own: dict[str, list[Step]] = {}
    order: list[str] = []
    for step in profile.steps:
        path = UNKNOWN if step.module is None else step.module
        own.setdefault(path, []).append(step)
        names = path.split(".") if path not in ("", UNKNOWN) else []
        for prefix in ["", *(".".join(names[: i + 1]) for i in range(len(names)))]:
            if prefix not in order:
                order.append(prefix)
        if path not in order:
            order.append(path)
    rank = {path: index for index, path in enumerate(order)}
    found = []
    for path in sorted(order, key=lambda path: _place(path, rank)):
        below = [s for other, steps in own.items() if _is_in(other, path) for s in steps]
        mine = _sums([step.ms for step in own.get(path, [])])
        depth = 0 if path in ("", UNKNOWN) else path.count(".") + 1
        name = "(model)" if path == "" else path.rpartition(".")[2] if depth else path
        line = _line(
            profile, name, sum(s.calls for s in below), _sums([s.ms for s in below]), depth
        )
        found.append(Line(**{**vars(line), "own_ms": median(mine), "module": path}))
    return found


def _place(path: str, rank: dict[str, int]) -> tuple[int, ...]:
    """Where a module stands: after its parent, among its siblings in the order of execution."""
    if path in ("", UNKNOWN):
        return (rank[path],) if path else (-1,)
    names = path.split(".")
    return tuple(rank[".".join(names[: i + 1])] for i in range(len(names)))


def _is_in(path: str, module: str) -> bool:
    if path == UNKNOWN or module == UNKNOWN:
        return path == module
    return module in ("", path) or path.startswith(module + ".")


def _instructions(profile: Profile) -> list[Line]:
    found = []
    for step in profile.steps:
        line = _line(profile, f"{step.index} {step.name}", step.calls, step.ms)
        origin = {"module": step.module, "source": step.source, "shape": step.shape}
        found.append(Line(**{**vars(line), **origin, **_rates(profile, step, line)}))
        found += _parts(profile, [step])
    return found


def _rates(profile: Profile, step: Step, line: Line) -> dict[str, float | None]:
    """Return what the instruction does, by second, and as a share of what the machine can."""
    work, seconds = step.work, line.ms / 1e3 / max(step.calls, 1)
    rates = [
        None if amount is None or seconds == 0 else amount / seconds
        for amount in (work.flop, work.bytes)
    ]
    shares = []
    if profile.peak is not None and seconds >= SHORTEST:
        peaks = (profile.peak.flop, profile.peak.bytes_of(work.bytes or 0))
        shares = [rate / peak for rate, peak in zip(rates, peaks, strict=True) if rate is not None]
    scaled = [None if rate is None else rate / 1e9 for rate in rates]
    return {
        "flop": work.flop,
        "bytes": work.bytes,
        "gflop_s": scaled[0],
        "gb_s": scaled[1],
        "of_peak": max(shares, default=None),
    }
