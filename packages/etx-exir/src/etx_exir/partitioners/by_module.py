# SPDX-License-Identifier: BSD-3-Clause
"""Partitions of what certain modules of the source compute."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Any

from torch import nn
from torch.fx import Node

from etx_exir.delegation.backend import DelegationSpec
from etx_exir.ir.provenance import module_stack
from etx_exir.partitioners.by_support import OperatorSupportPartitioner, Support

__all__ = ["ModulePartitioner"]


class ModulePartitioner(OperatorSupportPartitioner):
    """Delegates what modules compute that are named by class or by path.

    `classes` holds classes or their names (`Linear`, `torch.nn.modules.linear.Linear`), `paths`
    patterns such as `encoder.layers.*`. With `support`, only nodes that it accepts too.
    """

    def __init__(
        self,
        spec: DelegationSpec,
        *,
        classes: Collection[type[nn.Module] | str] = (),
        paths: Collection[str] = (),
        support: Support | None = None,
        **options: Any,
    ) -> None:
        super().__init__(spec, (lambda _: True) if support is None else support, **options)
        self.classes = {c if isinstance(c, str) else _name(c) for c in classes}
        self.paths = list(paths)

    def refusal(self, node: Node) -> str | None:
        """Return the path that is not asked for, or the reason of `support`."""
        if self._is_chosen(node):
            return super().refusal(node)
        path = next((path for path, _ in reversed(module_stack(node))), "")
        return f"module {path!r} is not among those to delegate"

    def _accepts(self, submodules: Any, node: Node) -> bool:
        return self._is_chosen(node) and super()._accepts(submodules, node)

    def _is_chosen(self, node: Node) -> bool:
        return any(
            kind in self.classes
            or kind.rpartition(".")[2] in self.classes
            or any(fnmatchcase(path, pattern) for pattern in self.paths)
            for path, kind in module_stack(node)
        )


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"
