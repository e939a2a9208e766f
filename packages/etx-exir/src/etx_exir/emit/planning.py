# SPDX-License-Identifier: BSD-3-Clause
"""Which planner a method gets, and whether what was asked of it makes sense."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from etx_exir.config import ExecutorchBackendConfig
from etx_exir.errors import ConfigError
from etx_exir.plan import MemoryPlanningPass, Pin


def check_planning(config: ExecutorchBackendConfig, methods: Collection[str]) -> None:
    """Refuse planners for methods that are not there, and what is no planner."""
    chosen = config.memory_planning_pass
    named = chosen if isinstance(chosen, Mapping) else {"all methods": chosen}
    if isinstance(chosen, Mapping) and (unknown := sorted(set(chosen) - set(methods))):
        raise ConfigError(
            f"memory_planning_pass: no method {', '.join(unknown)};"
            f" methods: {', '.join(sorted(methods))}"
        )
    for name, planner in named.items():
        if planner is not None and not isinstance(planner, MemoryPlanningPass):
            raise ConfigError(
                f"memory_planning_pass for {name}: expected an etx_exir.MemoryPlanningPass or a"
                f" dict from method to one, got {type(planner).__name__}"
            )


def planning_of(config: ExecutorchBackendConfig, method: str) -> MemoryPlanningPass:
    """Return how `method` is planned."""
    chosen = config.memory_planning_pass
    if isinstance(chosen, Mapping):
        chosen = chosen.get(method)
    return MemoryPlanningPass() if chosen is None else chosen


def check_pins(planners: Sequence[MemoryPlanningPass], matched: Collection[Pin]) -> None:
    """Refuse pins that no tensor of any method matches."""
    for planner in planners:
        if planner.memory_map is None:
            continue
        for pin in planner.memory_map.pins:
            if pin not in matched:
                raise ConfigError(f"no planned tensor of any method matches {pin}")
