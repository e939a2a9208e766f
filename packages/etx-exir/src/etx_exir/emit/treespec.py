# SPDX-License-Identifier: BSD-3-Clause
"""Container structures as the text that the file carries."""

from __future__ import annotations

from torch.utils import _pytree as pytree


def dump_treespec(spec: pytree.TreeSpec | None) -> str:
    """Return `spec` in torch's JSON form."""
    return "" if spec is None else pytree.treespec_dumps(spec)
