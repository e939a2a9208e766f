# SPDX-License-Identifier: BSD-3-Clause
"""Memory planning: lifetimes, shared storages, offsets."""

from etx_exir.plan.algorithms import (
    ALGORITHMS,
    Algorithm,
    Block,
    by_area,
    by_lifetime,
    by_pressure,
    by_size,
    by_time,
    no_reuse,
    place,
)
from etx_exir.plan.planner import MemoryPlanningPass, Plan, plan
from etx_exir.plan.report import ArenaReport, PlanReport

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "ArenaReport",
    "Block",
    "MemoryPlanningPass",
    "Plan",
    "PlanReport",
    "by_area",
    "by_lifetime",
    "by_pressure",
    "by_size",
    "by_time",
    "no_reuse",
    "place",
    "plan",
]
