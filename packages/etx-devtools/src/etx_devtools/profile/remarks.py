# SPDX-License-Identifier: BSD-3-Clause
"""What a dump says beside times: what failed, how much scratch memory was taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from etx_devtools.profile.profile import Profile, Step

__all__ = ["ERRORS", "Failure", "failures", "remarks", "scratch"]

ERRORS = {
    0x01: "Internal",
    0x02: "InvalidState",
    0x03: "EndOfMethod",
    0x04: "AlreadyLoaded",
    0x10: "NotSupported",
    0x11: "NotImplemented",
    0x12: "InvalidArgument",
    0x13: "InvalidType",
    0x14: "OperatorMissing",
    0x15: "RegistrationExceedingMaxKernels",
    0x16: "RegistrationAlreadyRegistered",
    0x20: "NotFound",
    0x21: "MemoryAllocationFailed",
    0x22: "AccessFailed",
    0x23: "InvalidProgram",
    0x24: "InvalidExternalData",
    0x25: "OutOfResources",
    0x30: "DelegateInvalidCompatibility",
    0x31: "DelegateMemoryAllocationFailed",
    0x32: "DelegateInvalidHandle",
    0x40: "Cancelled",
}
"""The names of `etx/error.h`."""


@dataclass(frozen=True)
class Failure:
    """An execution that ended at an instruction."""

    instruction: int
    operator: str
    module: str
    source: str
    error: str


def failures(profile: Profile) -> list[Failure]:
    """Return the executions that failed, in their order."""
    found = []
    for run in profile.executed:
        if run.failure is not None:
            code, index = run.failure
            step = _step(profile, index)
            place = (step.name, step.module or "", step.source or "") if step else ("", "", "")
            found.append(Failure(index, *place, ERRORS.get(code, f"error {code}")))
    return found


def scratch(profile: Profile) -> tuple[int, int] | None:
    """Return the most bytes that one instruction took beside planned memory, and its index."""
    return max((run.scratch for run in profile.executed if run.scratch is not None), default=None)


def remarks(profile: Profile) -> Iterator[str]:
    """Yield a line for each instruction that failed, and one of scratch memory."""
    found = failures(profile)
    for failure in dict.fromkeys(found):
        place = ", ".join(filter(None, (failure.module, failure.source)))
        times = found.count(failure)
        yield (
            f"instruction {failure.instruction} {failure.operator}{f' ({place})' if place else ''} "
            f"failed{f' {times} times' if times > 1 else ''}: {failure.error}"
        )
    most = scratch(profile)
    if most is not None:
        size, index = most
        step = _step(profile, index)
        name = step.name if step else ""
        yield f"scratch memory: at most {size:,} bytes, by instruction {index} {name}".rstrip()


def _step(profile: Profile, index: int) -> Step | None:
    return next((step for step in profile.steps if step.index == index), None)
