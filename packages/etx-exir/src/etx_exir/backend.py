# SPDX-License-Identifier: BSD-3-Clause
"""What a backend implements: a partitioner that picks nodes and `preprocess`, which lowers them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from etx_schema import CompileSpec
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from etx_exir.errors import BackendError

__all__ = [
    "DELEGATION_TAG",
    "BackendDetails",
    "CompileSpec",
    "DelegationSpec",
    "PartitionResult",
    "Partitioner",
    "PreprocessResult",
    "backend_of",
    "register_backend",
]

DELEGATION_TAG = "delegation_tag"


@dataclass(frozen=True)
class DelegationSpec:
    """Which backend lowers a partition, and with which options."""

    backend_id: str
    compile_specs: list[CompileSpec] = field(default_factory=list)


@dataclass
class PartitionResult:
    """A program whose nodes carry `meta["delegation_tag"]`, and the backend of each tag."""

    tagged_exported_program: ExportedProgram
    partition_tags: dict[str, DelegationSpec]


@dataclass
class PreprocessResult:
    """The blob of a delegate; `data_store_output` maps names to bytes stored beside it."""

    processed_bytes: bytes = b""
    debug_handle_map: dict[int, tuple[int, ...]] | None = None
    data_store_output: dict[str, Any] | None = None
    _delegate_info_meta: Any = None


class Partitioner(ABC):
    """Choose what is delegated.

    `partition` sets `meta["delegation_tag"]` on the nodes it wants and on the constant
    placeholders that only they use; nodes of one tag become one delegate.
    """

    @abstractmethod
    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes that are to be delegated; change nothing else."""

    def ops_to_not_decompose(
        self, exported_program: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        """Return operators to keep whole, and a filter that says for which nodes."""
        return [], None

    def why_not(self, node: Node) -> str | None:
        """Return why `node` is not delegated, or None when it is."""
        return None if DELEGATION_TAG in node.meta else "the partitioner gives no reason"


class BackendDetails(ABC):
    """Lower a partition to a blob.

    The name of the class is the backend's id; a class attribute `backend_id` overrides it.
    """

    @staticmethod
    @abstractmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Return the blob for `edge_program`; it takes and returns what the delegate does."""


_BACKENDS: dict[str, type[BackendDetails]] = {}


def register_backend(backend: type[BackendDetails]) -> type[BackendDetails]:
    """Make `backend` known under its id; subclasses of `BackendDetails` are found without it."""
    _BACKENDS[getattr(backend, "backend_id", backend.__name__)] = backend
    return backend


def backend_of(backend_id: str) -> type[BackendDetails]:
    """Return the backend registered under `backend_id`."""
    root: Any = BackendDetails
    known = {**_subclasses(root), **_BACKENDS}
    if backend_id not in known:
        names = ", ".join(sorted(known)) or "none"
        raise BackendError(
            f"backend {backend_id!r} is unknown; known: {names}. Import the package that "
            "defines it before lowering"
        )
    return known[backend_id]


def _subclasses(root: type[BackendDetails]) -> dict[str, type[BackendDetails]]:
    found: dict[str, type[BackendDetails]] = {}
    pending: Sequence[type[BackendDetails]] = root.__subclasses__()
    for backend in pending:
        found.update(_subclasses(backend))
        found[getattr(backend, "backend_id", backend.__name__)] = backend
    return found
