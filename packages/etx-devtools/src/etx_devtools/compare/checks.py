# SPDX-License-Identifier: BSD-3-Clause
"""What a comparison says of each result, and of a call."""

from __future__ import annotations

from dataclasses import dataclass, field

from etx_devtools.compare.layers import Layer
from etx_devtools.compare.metrics import Distance
from etx_devtools.compare.reduce import Found

__all__ = ["Check", "Comparison"]


@dataclass
class Check:
    """One result of an instruction.

    `made` is how far it is from what eager computes of the values that the device had before,
    `arrived` from what eager has there; `allowed` is the largest absolute error that rounding
    explains. `by` says what `made` was computed with: `value` the exported program, `operator`
    torch's operator of the same name, `program` another file. Without `made`, `reason` says why.
    `turn` counts the times that a loop came to it; `fault` says what else is wrong than the value:
    a result of another that it destroyed, a branch that should not have been taken, a buffer that
    is not what it was.
    """

    instruction: int
    operator: str
    slot: int
    module: str = ""
    source: str = ""
    value: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    by: str = ""
    made: Distance | None = None
    arrived: Distance | None = None
    allowed: float = 0.0
    reason: str = ""
    cause: str = ""
    suspects: tuple[int, ...] = ()
    turn: int = 0
    fault: str = ""

    @property
    def wrong(self) -> bool:
        """Whether the error made here is more than rounding explains, or one is made elsewhere."""
        made = self.made
        is_far = made is not None and (bool(made.problem) or not made.max_abs <= self.allowed)
        return is_far or bool(self.fault)


@dataclass
class Comparison:
    """The checks of one call in the order of the instructions.

    `outputs`, and `state` by name, are how far what the method returns and keeps is from eager's.
    `layers` are of a quantized program, next to the float model.
    """

    method: str
    checks: list[Check]
    outputs: list[Distance | None]
    state: dict[str, Distance] = field(default_factory=dict)
    found: Found | None = None
    not_run: int = 0
    layers: list[Layer] = field(default_factory=list)

    @property
    def first(self) -> Check | None:
        """The first check that is wrong."""
        return next((check for check in self.checks if check.wrong), None)
