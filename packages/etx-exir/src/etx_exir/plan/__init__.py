# SPDX-License-Identifier: BSD-3-Clause
"""Memory planning: lifetimes, shared storages, offsets, banks."""

from etx_exir.plan.algorithms import (
    ALGORITHMS,
    Algorithm,
    Block,
    MemoryPlanningAlgorithmSuite,
    by_area,
    by_lifetime,
    by_pressure,
    by_time,
    greedy,
    naive,
    place,
)
from etx_exir.plan.banks import Bank, Pin, TargetMemoryMap
from etx_exir.plan.options import MemoryPlanningPass
from etx_exir.plan.planner import Plan, plan
from etx_exir.plan.report import ArenaReport, PlanReport
from etx_exir.plan.tensors import PlannedTensor

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "ArenaReport",
    "Bank",
    "Block",
    "MemoryPlanningAlgorithmSuite",
    "MemoryPlanningPass",
    "Pin",
    "Plan",
    "PlanReport",
    "PlannedTensor",
    "TargetMemoryMap",
    "by_area",
    "by_lifetime",
    "by_pressure",
    "by_time",
    "greedy",
    "naive",
    "place",
    "plan",
]
