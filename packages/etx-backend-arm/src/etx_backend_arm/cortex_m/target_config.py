# SPDX-License-Identifier: BSD-3-Clause
"""The processor that a program of ``cortex_m::`` is for, under ExecuTorch's names."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

PREFIX = "cortex-m"


class Backend(Enum):
    """The builds of the kernels, each on processors with the ones before it."""

    SCALAR = auto()
    DSP = auto()
    MVE = auto()


class CortexM(Enum):
    """A processor, and the best build that it runs."""

    M0 = "m0", Backend.SCALAR
    M0PLUS = "m0plus", Backend.SCALAR
    M3 = "m3", Backend.SCALAR
    M23 = "m23", Backend.SCALAR
    M4 = "m4", Backend.DSP
    M7 = "m7", Backend.DSP
    M33 = "m33", Backend.DSP
    M35P = "m35p", Backend.DSP
    M55 = "m55", Backend.MVE
    M85 = "m85", Backend.MVE


@dataclass(frozen=True)
class CortexMTargetConfig:
    """A processor; `isa` is a build that it runs, for those without an extension.

    ETX's kernels run a program on all; ExecuTorch's read either a bias or sums of weights.
    Errors: ValueError for a build that the processor does not run.
    """

    cpu: CortexM
    isa: Backend | None = None

    def __post_init__(self) -> None:
        best = self.cpu.value[1]
        if self.isa is not None and self.isa.value > best.value:
            raise ValueError(f"{self.target_string} runs {best.name}, and not {self.isa.name}")

    @property
    def target_string(self) -> str:
        """Return the name of the target, such as `cortex-m55`."""
        return f"{PREFIX}{self.cpu.value[0][1:]}"

    @property
    def backend(self) -> Backend:
        """Return the build."""
        best: Backend = self.cpu.value[1]
        return self.isa or best

    @classmethod
    def from_target_string(cls, target: str) -> CortexMTargetConfig:
        """Return that of a target by name. Errors: ValueError with the names there are."""
        found = {cls(cpu).target_string: cls(cpu) for cpu in CortexM}
        if target not in found:
            raise ValueError(f"unknown target {target!r}: expected one of {', '.join(found)}")
        return found[target]
