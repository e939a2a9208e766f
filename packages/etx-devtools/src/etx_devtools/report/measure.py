# SPDX-License-Identifier: BSD-3-Clause
"""Times of each instruction of a file: measured here, or recorded on a device."""

from __future__ import annotations

from collections.abc import Sequence

from etx_schema import EtxError, read_pte
from etx_schema.calls import choose_method, method_names
from etx_schema.errors import naming
from etx_schema.files import PathLike

from etx_devtools.etdump import read_etdump
from etx_devtools.percentiles import median
from etx_devtools.profile import Profile, profile_of
from etx_devtools.profile.remarks import remarks

__all__ = ["measure", "recorded"]

EXECUTIONS = 50


def measure(path: str, inputs: Sequence[str] = ()) -> dict[str, list[float]]:
    """Return median milliseconds of each instruction by method, for these files' arrays or random.

    What recording costs is taken off. Needs etx-runtime.
    """
    try:
        from etx_runtime import Recorder, Runtime
        from etx_runtime.commands.samples import InputOptions, prepare_calls
    except ImportError as error:
        raise EtxError(f"--run needs etx-runtime and etx-kernels-portable ({error})") from error
    from etx_devtools.profile.record import Recorded, record

    pte = read_pte(path)
    program = Runtime.get().load_program(path)
    found: dict[str, list[float]] = {}
    for name in sorted(program.method_names):
        method = program.load_method(name)
        (call, *_) = prepare_calls(method, InputOptions([("", file) for file in inputs]))
        each = Recorded(method, Recorder(), call)
        record([each], EXECUTIONS)
        profile = profile_of(
            pte,
            each.runs,
            method=name,
            file=path,
            untraced_ms=each.untraced_ms,
            cost_ms=each.cost_ms,
            inner_cost_ms=each.inner_cost_ms,
        )
        found[name] = _times(profile)
    return found


def recorded(
    path: PathLike, dump: PathLike, method: str | None = None
) -> tuple[dict[str, list[float]], list[str]]:
    """Return median milliseconds of each instruction of `method` from an ETDump, and remarks."""
    pte = read_pte(path)
    name = choose_method(method_names(pte), method, str(path))
    with naming(dump):
        profile = profile_of(pte, read_etdump(dump), method=name, file=str(path))
    return {name: _times(profile)}, [f"{name}: {line}." for line in remarks(profile)]


def _times(profile: Profile) -> list[float]:
    times = [0.0] * (max((step.index for step in profile.steps), default=-1) + 1)
    for step in profile.steps:
        if step.ms:
            times[step.index] = median(step.ms)
    return times
