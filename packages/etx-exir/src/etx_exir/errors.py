# SPDX-License-Identifier: BSD-3-Clause
"""What went wrong in the compiler: the operator, the module, the source line and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from etx_schema import EtxError
from torch.fx import Node

from etx_exir.ir.provenance import module_path, source_path

__all__ = [
    "BackendError",
    "CaptureError",
    "ConfigError",
    "EmitError",
    "EtxError",
    "Finding",
    "LoweringError",
    "PlanError",
    "UnboundedError",
    "UnsupportedOperatorError",
    "VerificationError",
    "where",
]


class CaptureError(EtxError):
    """The module could not be exported."""


class ConfigError(EtxError):
    """An option is unknown, unsupported, or has a value that makes no sense."""


class LoweringError(EtxError):
    """A pass met something that it cannot lower."""


class PlanError(EtxError):
    """Tensors do not fit into the memory they are given, or an algorithm let two overlap."""


class BackendError(EtxError):
    """A partitioner or a backend broke the rules of delegation."""


class EmitError(EtxError):
    """The program cannot be written to a file."""


class UnboundedError(EmitError):
    """A size has no upper bound; `what` says which, `advice` what to do."""

    def __init__(self, where: str, what: str, advice: str) -> None:
        self.what, self.advice = what, advice
        super().__init__(f"{where}: {what}. {advice}")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: what, at which node, and what to do about it."""

    what: str
    where: str = ""
    advice: str = ""

    def __str__(self) -> str:
        place = f"\n    at {self.where}" if self.where else ""
        return f"{self.what}{place}" + (f"\n    {self.advice}" if self.advice else "")


class VerificationError(EtxError):
    """A program breaks the rules of its dialect; `findings` holds every breach."""

    def __init__(self, dialect: str, findings: Sequence[Finding]) -> None:
        self.findings = list(findings)
        count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
        lines = "\n  ".join(str(finding) for finding in findings)
        super().__init__(f"not a valid {dialect} program, {count}:\n  {lines}")


class UnsupportedOperatorError(VerificationError):
    """Operators that cannot be written to a file; all of them are named at once."""


def where(node: Node) -> str:
    """Return all that is known of where `node` comes from, in one line."""
    parts = [f"node {node.name}"]
    if module := module_path(node):
        parts.append(f"module {module}")
    if line := source_path(node):
        parts.append(line)
    return ", ".join(parts)
