# SPDX-License-Identifier: BSD-3-Clause
"""How the memory of a method is planned."""

from __future__ import annotations

from dataclasses import dataclass

from etx_exir.errors import ConfigError
from etx_exir.plan.algorithms import ALGORITHMS, Algorithm
from etx_exir.plan.banks import TargetMemoryMap, check_alignment

SHARED_STATE = 2


@dataclass(frozen=True)
class MemoryPlanningPass:
    """The options of the planner.

    `memory_planning_algo` places blocks (None: the best of all there are, then improved).
    `alloc_graph_input`, `alloc_graph_output` and `alloc_mutable_buffers` False leave the memory of
    these tensors to the caller. `share_mutable_buffers` puts state of the same name at the same
    place of arena 2 in every method. `alignment` is in bytes. `reuse_in_place` lets results take
    the memory of arguments. `memory_map` names the memories of the device.
    """

    memory_planning_algo: Algorithm | None = None
    allow_lifetime_and_storage_overlap: bool = False
    alloc_graph_input: bool = True
    alloc_graph_output: bool = True
    alloc_mutable_buffers: bool = True
    share_mutable_buffers: bool = False
    alignment: int = 16
    reuse_in_place: bool = True
    memory_map: TargetMemoryMap | None = None

    def __post_init__(self) -> None:
        if self.allow_lifetime_and_storage_overlap:
            raise ConfigError(
                "allow_lifetime_and_storage_overlap=True is not supported: every plan is checked;"
                " leave the option out (results share the memory of arguments where that is safe)"
            )
        if self.memory_planning_algo is not None and not callable(self.memory_planning_algo):
            raise ConfigError(
                "memory_planning_algo: expected a function from blocks to offsets, got"
                f" {type(self.memory_planning_algo).__name__}; several are tried by"
                " MemoryPlanningAlgorithmSuite"
            )
        check_alignment(self.alignment, "memory planning")
        if self.share_mutable_buffers and not self.alloc_mutable_buffers:
            raise ConfigError("share_mutable_buffers needs alloc_mutable_buffers=True")
        banks = self.memory_map.mem_ids() if self.memory_map is not None else []
        if self.share_mutable_buffers and SHARED_STATE in banks:
            raise ConfigError(
                f"share_mutable_buffers puts state into arena {SHARED_STATE}, which the memory map"
                " gives to a bank; choose another mem_id for it"
            )

    def algorithms(self) -> tuple[Algorithm, ...]:
        """Return the algorithms to try."""
        return ALGORITHMS if self.memory_planning_algo is None else (self.memory_planning_algo,)
