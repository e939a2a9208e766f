# SPDX-License-Identifier: BSD-3-Clause
"""Does a file run on ExecuTorch, too? As the target `executorch` says, which a compiler carries."""

from __future__ import annotations

from typing import Any

from etx_schema.errors import EtxError
from etx_schema.pte import PteFile
from etx_schema.targets.installed import target_paths
from etx_schema.targets.target import Target

PEER = "executorch"


def compare(pte: PteFile, target: Target | None = None) -> dict[str, Any] | None:
    """Say what stands against running `pte` on ExecuTorch; None where no table is installed.

    `runs`, `version` of ExecuTorch, `missing` operators, `text`: all of it in one line.
    """
    if target is None:
        try:
            target = Target.load(PEER) if PEER in target_paths() else None
        except EtxError:
            target = None
    if target is None:
        return None
    problems = target.check(pte, ())
    dtypes = sorted({f"{p.operator} of {p.subject}" for p in problems if p.kind == "dtype"})
    operators = sorted({p.subject for p in problems if p.kind == "operator"})
    backends = sorted({f"backend {p.subject}" for p in problems if p.kind == "backend"})
    limits = sorted({p.kind for p in problems} - {"operator", "dtype", "backend"})
    version = target.runtime.get("executorch", "")
    name = f"ExecuTorch {version}".rstrip()
    against = [*operators, *dtypes, *backends, *limits]
    text = f"does not run on {name}, because of {', '.join(against)}" if against else ""
    return {
        "name": target.name,
        "version": version,
        "runs": not against,
        "missing": operators,
        "text": text or f"runs on {name}, too",
    }
