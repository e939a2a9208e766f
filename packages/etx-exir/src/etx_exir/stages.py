# SPDX-License-Identifier: BSD-3-Clause
"""The log of a compilation: what each step changed, and why operators stayed as they are."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torch.export import ExportedProgram

from etx_exir.delegation.explain import name_of
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.debug_handles import handle_of
from etx_exir.ir.delegate_call import CALL_DELEGATE, LoweredBackendModule
from etx_exir.ir.provenance import module_path, source_line
from etx_exir.passes.base import Pass
from etx_exir.progress import method_name

__all__ = ["FORMAT", "Stages"]

FORMAT = "etx/stages"
VERSION = 1
OTHER = {
    "decompose": "``f(x)`` -> core operators, where the target has no kernel of ``f``.",
    "delegate": "operators that a partitioner takes -> the call of a delegate.",
}


class _Call(NamedTuple):
    """What makes a call the same before and after a step."""

    operator: str
    module: str
    source: str
    handle: int


class Stages:
    """An `Observer` that notes for each method what each step removed and added.

    Calls are told apart by operator, module, source line and debug handle, so that an operator
    that a pass only rewired is not listed.
    """

    def __init__(self, programs: Mapping[str, ExportedProgram]) -> None:
        self._before = {name: _calls(program) for name, program in programs.items()}
        self._methods: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}
        kinds = _below(Pass)
        self._equations = {kind.__module__.rsplit(".", 1)[-1]: kind.equation() for kind in kinds}

    def __call__(self, name: str, program: ExportedProgram, changed: bool) -> None:
        """Note a step of the method that is being compiled."""
        method = method_name() or "forward"
        before = self._before.get(method, Counter())
        after = now = _calls(program) if changed else before
        if name == "decompose":  # it numbers the nodes
            before, now = _unnumbered(before), _unnumbered(after)
        self._methods.setdefault(method, []).append(
            {
                "name": name,
                "equation": OTHER.get(name) or self._equations.get(name, ""),
                "changed": changed,
                "operators": [before.total(), now.total()],
                "removed": _grouped(before - now),
                "added": _grouped(now - before),
            }
        )
        self._before[method] = after

    def document(self, blob: bytes, explained: Mapping[str, Any]) -> dict[str, Any]:
        """Return the log for the file whose bytes are `blob`, with what `--explain` says."""
        methods = {
            name: {"stages": stages, **explained.get(name, {})}
            for name, stages in self._methods.items()
        }
        file = {"bytes": len(blob), "crc32": zlib.crc32(blob)}
        return {"format": FORMAT, "version": VERSION, "file": file, "methods": methods}


def _below(kind: Any) -> Iterator[type[Pass]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def _calls(program: ExportedProgram) -> Counter[_Call]:
    nodes = (node for module in graph_modules(program.graph_module) for node in module.graph.nodes)
    found: Counter[_Call] = Counter()
    for node in nodes:
        if node.op != "call_function":
            continue
        operator = name_of(node)
        if node.target is CALL_DELEGATE:
            lowered = getattr(node.graph.owning_module, str(node.args[0].target), None)
            backend = lowered.backend_id if isinstance(lowered, LoweredBackendModule) else "?"
            operator = f"delegate {backend}"
        elif not hasattr(node.target, "_schema") and not hasattr(node.target, "_name"):
            continue
        place = module_path(node) or "", source_line(node)
        found[_Call(operator, *place, handle_of(node) or 0)] += 1
    return found


def _unnumbered(calls: Counter[_Call]) -> Counter[_Call]:
    found: Counter[_Call] = Counter()
    for call, times in calls.items():
        found[call._replace(handle=0)] += times
    return found


def _grouped(calls: Counter[_Call]) -> list[list[Any]]:
    """Return rows of operator, module, source line, times and handles."""
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for call in calls.elements():
        groups[call[:3]].append(call.handle)
    return [
        [*key, len(handles), sorted({*handles} - {0})] for key, handles in sorted(groups.items())
    ]
