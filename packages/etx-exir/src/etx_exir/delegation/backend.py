# SPDX-License-Identifier: BSD-3-Clause
"""What a backend implements: a partitioner that picks nodes and `preprocess`, which lowers them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from etx_schema import CompileSpec, NamedBlob
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node

from etx_exir.errors import BackendError
from etx_exir.ir.data_store import NamedDataStoreOutput

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
    """The blob of a delegate, and what belongs to it.

    `data_store_output` is what `NamedDataStore.get_named_data_store_output` returns, or a dict
    from name to bytes. `debug_handle_map` says of each identifier that the delegate uses in its
    profile which nodes (by debug handle) it stands for.
    """

    processed_bytes: bytes = b""
    debug_handle_map: Mapping[int, tuple[int, ...]] | Mapping[str, tuple[int, ...]] | None = None
    data_store_output: NamedDataStoreOutput | Mapping[str, NamedBlob | bytes] | None = None
    _delegate_info_meta: Any = None


class Partitioner(ABC):
    """Choose what is delegated.

    `partition` sets `meta["delegation_tag"]` on the nodes it takes: nodes of one tag become one
    delegate. A constant or a mutable buffer moves into the delegate when its placeholder carries
    the tag (`tag_constant_data`, `tag_mutated_buffer`); without a tag it is an input of the call.
    A `cond` or a loop is tagged as a whole; else the nodes of its bodies may be tagged.
    """

    _spec: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, spec: Mapping[str, Any] = _spec) -> None:
        self._spec = MappingProxyType(dict(spec))

    @property
    def spec(self) -> Mapping[str, Any]:
        """The options that the partitioner was made with; they do not change."""
        return self._spec

    @abstractmethod
    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes that are to be delegated."""

    def __call__(self, exported_program: ExportedProgram) -> PartitionResult:
        """Do what `partition` does."""
        return self.partition(exported_program)

    def ops_to_not_decompose(
        self, exported_program: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        """Return operators to keep whole, and a filter that says for which nodes."""
        return [], None

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        """Return the program that is decomposed: this one, or a copy that the backend changed."""
        return exported_program

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

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: dict[str, list[ExportedProgram]],
        compile_specs: dict[str, list[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        """Return the blobs of all partitions of all methods; override it to share between them."""
        return {
            method: [
                cls.preprocess(part, specs)
                for part, specs in zip(parts, compile_specs[method], strict=True)
            ]
            for method, parts in edge_programs.items()
        }


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
