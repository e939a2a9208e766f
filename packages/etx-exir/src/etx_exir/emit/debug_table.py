# SPDX-License-Identifier: BSD-3-Clause
"""What a file says of where its instructions come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from etx_schema import DelegateCall, ExecutionPlan, Frame, FrameList, KernelCall
from etx_schema.inspect.reads_writes import split_results
from etx_schema.problem import DEBUG_KEY
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.debug_handles import handle_of, number_nodes
from etx_exir.ir.delegate_call import CALL_DELEGATE, LoweredBackendModule
from etx_exir.ir.equal_values import Note, note_of
from etx_exir.ir.provenance import is_known, lines, module_path, nearest_known, source_line
from etx_exir.plan.linear_ir import Listing

__all__ = ["DEBUG_KEY", "Origins", "stack_frames"]


def stack_frames(listing: Listing) -> list[FrameList]:
    """Return the author's stack of every instruction that is left, with full paths."""
    return [FrameList(items=_frames(step.source)) for step in listing.steps if not step.dead]


@dataclass
class Origins:
    """Where the instructions of one method come from, in their order."""

    program: ExportedProgram
    nodes: list[Node | None]
    equals: dict[int, Note]

    @classmethod
    def of(cls, program: ExportedProgram, listing: Listing, values: Mapping[Node, Any]) -> Origins:
        """Read the nodes off the steps that are left; `values` are slots by node."""
        number_nodes(program)
        steps = [step for step in listing.steps if not step.dead]
        written = {slot for step in steps for slot in (*step.writes, *step.updates)}
        noted = {slot: note_of(node) for node, slot in values.items() if isinstance(slot, int)}
        equals = {s: note for s, note in sorted(noted.items()) if s in written and note}
        return cls(program, [step.source for step in steps], equals)

    def document(self, constants: Mapping[int, str]) -> dict[str, Any]:
        """Return the method's entry of `etx/debug`; `constants` are names by data index."""
        holders = _holders(self.program.graph_module)
        rows = [None if node is None else _row(node, holders) for node in self.nodes]
        inner = {
            str(handle): _row(node, {})
            for lowered in map(lowered_module, self.nodes)
            if lowered is not None
            for handle, node in _first_of_each(_calls(lowered.original_module))
        }
        document = {
            "instructions": rows,
            "values": {str(slot): note for slot, note in self.equals.items()},
            "constants": {str(key): name for key, name in sorted(constants.items())},
        }
        return document | ({"handles": inner} if inner else {})

    def handles(self) -> dict[int, int | list[int]]:
        """Return the handle of each instruction; a list for the call of a delegate."""
        found: dict[int, int | list[int]] = {}
        for i, node in enumerate(self.nodes):
            lowered = lowered_module(node)
            if lowered is not None:
                found[i] = _handles(lowered)
            elif node is not None and (handle := handle_of(node)):
                found[i] = handle
        return found

    def results(self, plan: ExecutionPlan) -> dict[int, int]:
        """Return how many results each instruction of `plan` has."""
        found = {}
        for i, instruction in enumerate(plan.chains[0].instructions):
            call, node = instruction.instr_args, self.nodes[i]
            found[i] = 0
            if isinstance(call, KernelCall):
                found[i] = len(split_results(plan, call.args)[0])
            elif isinstance(call, DelegateCall) and node is not None:
                value = node.meta["val"]
                found[i] = len(value) if isinstance(value, (list, tuple)) else 1
        return found

    def delegates(self) -> dict[int, dict[str, Any]]:
        """Return for each call of a delegate its backend, and the handles of the backend's ids."""
        modules = {i: lowered_module(node) for i, node in enumerate(self.nodes)}
        return {
            i: {"name": lowered.backend_id, "delegate_map": dict(lowered.meta["debug_handle_map"])}
            for i, lowered in modules.items()
            if lowered is not None
        }


def lowered_module(node: Node | None) -> LoweredBackendModule | None:
    """Return the delegate that `node` calls, None when it calls something else."""
    if node is None or node.target is not CALL_DELEGATE:
        return None
    attribute, owner = node.args[0], node.graph.owning_module
    found = getattr(owner, str(attribute.target)) if isinstance(attribute, Node) else None
    return found if isinstance(found, LoweredBackendModule) else None


def _row(node: Node, holders: Mapping[Graph, Node]) -> dict[str, Any]:
    """Return module, line, operator and handles of `node`, of which some may be unknown."""
    lowered = lowered_module(node)
    if lowered is not None:
        return _delegate_row(lowered)
    op = str(node.target) if isinstance(node.target, OpOverload) else node.name
    module, source = module_path(node), source_line(node)
    outer = holders.get(node.graph)
    while outer is not None and (module is None or not source):
        module = module_path(outer) if module is None else module
        source = source or source_line(outer)
        outer = holders.get(outer.graph)
    if not module and not source and is_known(known := nearest_known(node)):
        module, source = module_path(known), source_line(known)
    row: dict[str, Any] = {"source": source, "op": op}
    if module is not None:
        row["module"] = module
    handle = handle_of(node)
    return row | ({"handles": [handle]} if handle else {})


def _delegate_row(lowered: LoweredBackendModule) -> dict[str, Any]:
    """Return the module that holds all that is delegated, its first line, and all handles."""
    calls = _calls(lowered.original_module)
    known = [node for node in calls if is_known(node)]
    paths = [(module_path(node) or "").split(".") for node in known]
    common = takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
    row: dict[str, Any] = {
        "module": ".".join(parts[0] for parts in common),
        "source": next((line for line in map(source_line, calls) if line), ""),
        "op": lowered.backend_id,
        "handles": _handles(lowered),
    }
    ids = lowered.meta["debug_handle_map"]
    return row | ({"ids": {str(key): sorted(ids[key]) for key in ids}} if ids else {})


def _calls(program: ExportedProgram) -> list[Node]:
    return [
        node
        for module in graph_modules(program.graph_module)
        for node in module.graph.nodes
        if node.op == "call_function"
    ]


def _handles(lowered: LoweredBackendModule) -> list[int]:
    return sorted({handle_of(node) or 0 for node in _calls(lowered.original_module)} - {0})


def _first_of_each(nodes: Iterable[Node]) -> Iterator[tuple[int, Node]]:
    seen: set[int] = set()
    for node in nodes:
        handle = handle_of(node)
        if handle and handle not in seen:
            seen.add(handle)
            yield handle, node


def _holders(root: GraphModule) -> dict[Graph, Node]:
    """Return for each nested graph the node that runs it."""
    found = {}
    for module in graph_modules(root):
        for attribute in module.graph.find_nodes(op="get_attr"):
            child = getattr(module, str(attribute.target), None)
            if isinstance(child, GraphModule) and attribute.users:
                found[child.graph] = next(iter(attribute.users))
    return found


def _frames(node: Node | None) -> list[Frame]:
    return [
        Frame(filename=line.file, lineno=line.number, name=line.function, context=line.text)
        for line in lines(node)
    ]
