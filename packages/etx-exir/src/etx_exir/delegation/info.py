# SPDX-License-Identifier: BSD-3-Clause
"""How much of a program is delegated, by operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch.fx import GraphModule

from etx_exir.delegation.explain import name_of, operators, table
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.delegate_call import LoweredBackendModule

__all__ = [
    "DelegationBreakdown",
    "DelegationInfo",
    "get_delegation_info",
    "print_delegation_info",
]


@dataclass
class DelegationBreakdown:
    """How often an operator is delegated, and how often not."""

    op_type: str
    delegated: int = 0
    non_delegated: int = 0


@dataclass
class DelegationInfo:
    """Counts over a program, the graphs inside it and inside its delegates."""

    num_delegated_subgraphs: int
    num_delegated_nodes: int
    num_non_delegated_nodes: int
    delegation_by_operator: dict[str, DelegationBreakdown]
    delegates_by_backend: dict[str, int] = field(default_factory=dict)

    def get_summary(self) -> str:
        """Return the totals, a line each."""
        backends = [f"{count} {name}" for name, count in self.delegates_by_backend.items()]
        return (
            f"Delegates: {self.num_delegated_subgraphs}"
            f"{' (' + ', '.join(backends) + ')' if backends else ''}\n"
            f"Operators in delegates: {self.num_delegated_nodes}\n"
            f"Operators outside: {self.num_non_delegated_nodes}"
        )

    def get_operator_delegation_rows(self) -> list[DelegationBreakdown]:
        """Return a row an operator, by name; `pandas.DataFrame` takes the list as it is."""
        return [self.delegation_by_operator[name] for name in sorted(self.delegation_by_operator)]

    def get_operator_delegation_table(self) -> str:
        """Return those rows as text, with their sum."""
        rows: list[tuple[Any, ...]] = [
            (row.op_type, row.delegated, row.non_delegated)
            for row in self.get_operator_delegation_rows()
        ]
        rows.append(("total", self.num_delegated_nodes, self.num_non_delegated_nodes))
        return table(rows, ("operator", "delegated", "outside"))


def get_delegation_info(graph_module: GraphModule) -> DelegationInfo:
    """Count the operators of a graph module by whether a delegate runs them."""
    rows: dict[str, DelegationBreakdown] = {}
    lowered = [child for module in graph_modules(graph_module) for child in _delegates(module)]
    for node in operators(graph_module):
        rows.setdefault(name_of(node), DelegationBreakdown(name_of(node))).non_delegated += 1
    backends: dict[str, int] = {}
    for delegate in lowered:
        backends[delegate.backend_id] = backends.get(delegate.backend_id, 0) + 1
        for node in operators(delegate.original_module.graph_module):
            rows.setdefault(name_of(node), DelegationBreakdown(name_of(node))).delegated += 1
    return DelegationInfo(
        len(lowered),
        sum(row.delegated for row in rows.values()),
        sum(row.non_delegated for row in rows.values()),
        rows,
        dict(sorted(backends.items())),
    )


def _delegates(module: GraphModule) -> list[LoweredBackendModule]:
    found = [getattr(module, str(n.target), None) for n in module.graph.find_nodes(op="get_attr")]
    return [item for item in found if isinstance(item, LoweredBackendModule)]


def print_delegation_info(graph_module: GraphModule) -> None:
    """Print totals and table."""
    info = get_delegation_info(graph_module)
    print(info.get_summary())
    print(info.get_operator_delegation_table())
