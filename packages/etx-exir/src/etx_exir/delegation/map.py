# SPDX-License-Identifier: BSD-3-Clause
"""What a backend returns so that its own ids lead back to the author's lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch.fx import Node

from etx_exir.errors import BackendError
from etx_exir.ir.debug_handles import HANDLE

__all__ = ["DelegateMappingBuilder"]


class DelegateMappingBuilder:
    """Collect which nodes each part of a delegate was made of.

    `get_delegate_mapping()` is the `debug_handle_map` of a `PreprocessResult`. The ids are either
    the backend's own (integers or strings), or numbers from 0 that the builder generates.
    """

    def __init__(self, generated_identifiers: bool = False) -> None:
        self._generated = generated_identifiers
        self._handles: dict[Any, tuple[int, ...]] = {}

    def insert_delegate_mapping_entry(
        self,
        nodes: Node | Iterable[Node] | None = None,
        handles: int | Iterable[int | None] | None = None,
        identifier: int | str | None = None,
    ) -> int | str:
        """Note that a part was made of `nodes` or of what has these `handles`; return its id."""
        if (nodes is None) == (handles is None):
            raise BackendError("a delegate map entry takes either nodes or handles")
        if self._generated != (identifier is None):
            what = "generates the ids; give none" if self._generated else "needs an id"
            raise BackendError(f"this DelegateMappingBuilder {what}, got identifier={identifier!r}")
        key = len(self._handles) if identifier is None else identifier
        if key in self._handles:
            raise BackendError(f"the delegate map has an entry {key!r} already")
        if nodes is not None:
            given = [nodes] if isinstance(nodes, Node) else nodes
            found = {node.meta.get(HANDLE) for node in given}
        else:
            found = {handles} if isinstance(handles, int) else set(handles or ())
        known = sorted(handle for handle in found if isinstance(handle, int))
        if not known:
            raise BackendError(f"delegate map entry {key!r}: none of its nodes has a debug handle")
        self._handles[key] = tuple(known)
        return key

    def get_delegate_mapping(self) -> dict[Any, tuple[int, ...]]:
        """Return the debug handles of each id, in increasing order."""
        return dict(self._handles)
