# SPDX-License-Identifier: BSD-3-Clause
"""Memory planning over a graph whose nodes have specs, and what verifies a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import etx_exir
from etx_exir.errors import PlanError
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.plan import Bank, Pin, PlannedTensor, TargetMemoryMap
from etx_schema import DeviceType, NonConstBufferDevice
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult
from torch.utils import _pytree as pytree

from etx_executorch.adapters.out_variants import get_alloc_node
from etx_executorch.adapters.planning import (
    BASES,
    FIRST,
    MemoryPlanningAlgorithmSuite,
    block_algorithm,
    extend_lifetimes,
    greedy,
)
from etx_executorch.adapters.specs import ALIGNMENT, TensorSpec, specs_of

__all__ = [
    "MemoryPlanningPass",
    "Verifier",
    "apply_algo",
    "collect_specs_from_nodes",
    "do_user_inputs_exist",
    "filter_nodes",
    "get_graph_input_tensors",
    "get_graph_output_tensors",
    "get_node_tensor_specs",
    "keep_memories",
    "update_all_tensors_lifetime",
]

MEMORY = "etx_memory"


def filter_nodes(inputs: Iterable[Any]) -> Iterator[Node]:
    """Yield the nodes in a nest of lists and dicts."""
    yield from (leaf for leaf in pytree.tree_leaves(list(inputs)) if isinstance(leaf, Node))


def get_node_tensor_specs(node: Node) -> list[TensorSpec]:
    """Return the specs of a node."""
    return specs_of(node)


def do_user_inputs_exist(graph_signature: Any) -> bool:
    """Tell whether a tensor is among the inputs of the user."""
    return any(
        spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument)
        for spec in graph_signature.input_specs
    )


def _inputs(nodes: Iterable[Node], signature: Any) -> list[Node]:
    """Return the inputs of the user; without a signature, all of a graph."""
    placeholders = [node for node in nodes if node.op == "placeholder"]
    if signature is None:
        return placeholders
    names = {s.arg.name for s in signature.input_specs if s.kind is InputKind.USER_INPUT}
    return [node for node in placeholders if node.name in names]


def _state(nodes: Iterable[Node], signature: Any) -> list[Node]:
    """Return the inputs that hold state which the program changes."""
    if signature is None:
        return []
    changed = {s.target for s in signature.output_specs if s.kind is OutputKind.BUFFER_MUTATION}
    names = {s.arg.name for s in signature.input_specs if s.target in changed}
    return [node for node in nodes if node.op == "placeholder" and node.name in names]


def _outputs(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if node.op == "output"]


def _all(nodes: Iterable[Node]) -> set[TensorSpec]:
    return {spec for node in nodes for spec in specs_of(node)}


def get_graph_input_tensors(nodes: Iterable[Node], graph_signature: Any = None) -> set[TensorSpec]:
    """Return the specs of the inputs of the user."""
    return _all(_inputs(nodes, graph_signature))


def get_graph_output_tensors(nodes: Iterable[Node]) -> set[TensorSpec]:
    """Return the specs of what a graph returns."""
    return _all(_outputs(list(nodes)))


def collect_specs_from_nodes(
    nodes: Iterable[Node],
    graph_signature: Any = None,
    ignore_graph_input: bool = False,
    ignore_graph_output: bool = False,
    ignore_mutable_buffers: bool = False,
    share_mutable_buffers: bool = False,
    ignore_const: bool = True,
    ignore_out_var_node: bool = True,
    dedup: bool = True,
    do_assertion: bool = True,
    **_: Any,
) -> Iterator[TensorSpec]:
    """Yield the specs that are planned, each once."""
    nodes = list(nodes)
    left: set[TensorSpec] = set()
    if ignore_graph_input:
        left |= get_graph_input_tensors(nodes, graph_signature)
    if ignore_graph_output:
        left |= get_graph_output_tensors(nodes)
    if ignore_mutable_buffers or share_mutable_buffers:
        left |= _all(_state(nodes, graph_signature))
    for node in nodes:
        if ignore_out_var_node and get_alloc_node(node):
            continue
        if do_assertion and "spec" not in node.meta:
            raise PlanError(f"{node.name} has no spec: run SpecPropPass first")
        for spec in specs_of(node):
            if spec in left or (ignore_const and spec.const):
                continue
            if dedup:
                left.add(spec)
            yield spec


def update_all_tensors_lifetime(
    graph_module: GraphModule, graph_signature: Any = None
) -> set[TensorSpec]:
    """Set when each spec of a graph is live first and last; return them."""
    nodes = list(graph_module.graph.nodes)
    specs = _all(nodes)
    for spec in specs:
        spec.lifetime = [None, None]
    inputs = _all(node for node in nodes if node.op == "placeholder")
    state = _all(_state(nodes, graph_signature))
    for index, node in enumerate(nodes):
        for spec in [*specs_of(node), *(s for arg in node.all_input_nodes for s in specs_of(arg))]:
            first = spec.lifetime[0]
            spec.lifetime = [0 if spec in inputs else index if first is None else first, index]
    for spec in state:
        spec.lifetime = [0, len(nodes) - 1]
    extend_lifetimes(specs)
    return specs


def apply_algo(
    algo: Any,
    graph_module: GraphModule,
    alignment: int,
    graph_signature: Any = None,
    alloc_graph_input: bool = True,
    alloc_graph_output: bool = True,
    alloc_mutable_buffers: bool = True,
    share_mutable_buffers: bool = False,
    enable_non_cpu_memory_planning: bool = False,
) -> list[int]:
    """Plan a graph, those nested in it first; return the bytes of each memory, by id.

    Nested graphs share their memory among each other, below what the graph around them has.
    Specs whose `device` is not the CPU have, if asked for, a memory for each device, which
    `meta["non_const_buffer_device"]` lists.
    """
    nested: list[int] = [0, 0]
    for node in graph_module.graph.find_nodes(op="get_attr"):
        child = getattr(graph_module, str(node.target), None)
        if isinstance(child, GraphModule):
            sizes = apply_algo(algo, child, alignment)
            width = max(len(sizes), len(nested))
            padded = [each + [0] * (width - len(each)) for each in (sizes, nested)]
            nested = list(map(max, *padded))
    update_all_tensors_lifetime(graph_module, graph_signature)
    found = collect_specs_from_nodes(
        graph_module.graph.nodes,
        graph_signature,
        not alloc_graph_input,
        not alloc_graph_output,
        not alloc_mutable_buffers,
        share_mutable_buffers,
        do_assertion=False,
    )
    specs = dict.fromkeys(found).keys()
    devices = _devices(specs) if enable_non_cpu_memory_planning else []
    if devices:
        graph_module.meta["non_const_buffer_device"] = devices
        nested = [0] if all(spec.device != DeviceType.CPU for spec in specs) else nested
    setattr(graph_module, BASES, nested)
    sizes = algo(alignment, specs, graph_module, graph_signature, 0)
    graph_module.meta["non_const_buffer_sizes"] = sizes
    return list(sizes)


def _devices(specs: Iterable[TensorSpec]) -> list[NonConstBufferDevice]:
    """Give the specs of each device that is not the CPU a memory id; return the devices by id."""
    elsewhere = [spec for spec in specs if spec.device != DeviceType.CPU]
    if elsewhere and any(spec.mem_id is not None for spec in specs):
        raise NotImplementedError("memory ids are chosen already: devices cannot have their own")
    first = 1 if all(spec in elsewhere for spec in specs) else 2
    keys = sorted({(int(spec.device), spec.device_index) for spec in elsewhere})
    ids = {key: number for number, key in enumerate(keys, first)}
    for spec in elsewhere:
        spec.mem_id = ids[int(spec.device), spec.device_index]
    return [NonConstBufferDevice(ids[key], DeviceType(key[0]), key[1]) for key in keys]


class MemoryPlanningPass:
    """The options of memory planning, and a pass that plans a graph with specs.

    A subclass may choose memories: what its `run` writes into `mem_id` of specs is kept in the
    file. Offsets are those of `memory_planning_algo`, over the instructions of the file.
    """

    def __init__(
        self,
        memory_planning_algo: Any = None,
        allow_lifetime_and_storage_overlap: bool = False,
        alloc_graph_input: bool = True,
        alloc_graph_output: bool = True,
        alloc_mutable_buffers: bool = True,
        share_mutable_buffers: bool = False,
        alignment: int = ALIGNMENT,
        **options: Any,
    ) -> None:
        self.memory_planning_algo = memory_planning_algo
        self.allow_lifetime_and_storage_overlap = allow_lifetime_and_storage_overlap
        self.alloc_graph_input = alloc_graph_input
        self.alloc_graph_output = alloc_graph_output
        self.alloc_mutable_buffers = alloc_mutable_buffers
        self.share_mutable_buffers = share_mutable_buffers
        self.alignment = alignment
        self.more = options
        self.options(None, None)

    def options(
        self, graph_module: Any, signature: Any, **more: Any
    ) -> etx_exir.MemoryPlanningPass:
        """Return ETX's options; the algorithm is told of the graph."""
        algorithm = self.memory_planning_algo
        return etx_exir.MemoryPlanningPass(
            block_algorithm(algorithm, graph_module, signature, self.alignment),
            self.allow_lifetime_and_storage_overlap,
            self.alloc_graph_input,
            self.alloc_graph_output,
            self.alloc_mutable_buffers,
            self.share_mutable_buffers,
            self.alignment,
            **{**self.more, **more},
        )

    def is_custom(self) -> bool:
        """Tell whether a subclass has a say in the plan of a graph."""
        own: Any = MemoryPlanningPass
        return any(getattr(type(self), name) is not getattr(own, name) for name in ("run", "call"))

    def run(self, graph_module: GraphModule, graph_signature: Any = None) -> PassResult:
        """Plan a graph: `mem_id` and `mem_offset` of its specs, and the sizes in its meta."""
        self._set_alloc_node_spec(graph_module)
        algorithm = self.memory_planning_algo
        if not isinstance(algorithm, MemoryPlanningAlgorithmSuite):
            algorithm = MemoryPlanningAlgorithmSuite([algorithm or greedy])
        apply_algo(
            algorithm,
            graph_module,
            self.alignment,
            graph_signature,
            self.alloc_graph_input,
            self.alloc_graph_output,
            self.alloc_mutable_buffers,
            self.share_mutable_buffers,
        )
        return PassResult(graph_module, True)

    def call(self, graph_module: GraphModule) -> PassResult:
        """Plan a graph without a signature."""
        return self.run(graph_module)

    def __call__(self, graph_module: GraphModule) -> PassResult:
        """Do what `call` does."""
        return self.call(graph_module)

    def _set_alloc_node_spec(self, graph_module: GraphModule) -> None:
        """Let memory that is made for a result have its spec.

        A node's `meta["_share_alloc_with_arg_idx"]` places its result within an argument, at
        `meta["_shared_alloc_offset"]`.
        """
        for module in graph_modules(graph_module):
            for node in module.graph.nodes:
                for made, spec in zip(get_alloc_node(node), specs_of(node), strict=False):
                    made.meta["spec"] = spec
                index = node.meta.get("_share_alloc_with_arg_idx")
                if index is not None:
                    (spec,), (base,) = specs_of(node), specs_of(node.args[index])
                    spec.storage_base = base
                    spec.storage_base_offset = node.meta.get("_shared_alloc_offset", 0)


def keep_memories(planned: Sequence[Node], nodes: Sequence[Node]) -> TargetMemoryMap | None:
    """Note at the nodes of a program the memories of their twins in a planned graph.

    Returns banks and pins for them, None where all are in the first.
    """
    used = {FIRST}
    for twin, node in zip(planned, nodes, strict=True):
        ids = {spec.mem_id for spec in specs_of(twin)} - {None, FIRST}
        if len(ids) == 1 and node.op != "output":
            node.meta[MEMORY] = ids.pop()
            used.add(node.meta[MEMORY])
    if used == {FIRST}:
        return None

    def lies(tensor: PlannedTensor, mem_id: int) -> bool:
        return tensor.node is not None and tensor.node.meta.get(MEMORY) == mem_id

    banks = [Bank(f"memory {mem_id}", None, mem_id) for mem_id in sorted(used)]
    pins = [Pin(bank.name, when=partial(lies, mem_id=bank.mem_id)) for bank in banks[1:]]
    return TargetMemoryMap(banks, pins)


class Verifier:
    """Checks the plan of a graph."""

    def __init__(
        self,
        graph_module: GraphModule,
        alloc_graph_input: bool,
        alloc_graph_output: bool,
        alloc_mutable_buffers: bool,
        graph_signature: Any = None,
    ) -> None:
        self.graph_module = graph_module
        self.graph_signature = graph_signature
        self.alloc_graph_input = alloc_graph_input
        self.alloc_graph_output = alloc_graph_output
        self.alloc_mutable_buffers = alloc_mutable_buffers

    @classmethod
    def has_overlap(cls, lhs_ivl: Sequence[int], rhs_ivl: Sequence[int]) -> bool:
        """Tell whether two intervals, ends included, meet."""
        return lhs_ivl[0] <= rhs_ivl[1] and rhs_ivl[0] <= lhs_ivl[1]

    @classmethod
    def lifetime_overlap(cls, lhs_spec: TensorSpec, rhs_spec: TensorSpec) -> bool:
        """Tell whether two specs are live at one step."""
        return cls.has_overlap(lhs_spec.lifetime, rhs_spec.lifetime)

    @classmethod
    def storage_overlap(cls, lhs_spec: TensorSpec, rhs_spec: TensorSpec) -> bool:
        """Tell whether two specs have bytes in common."""
        if lhs_spec.mem_id != rhs_spec.mem_id or lhs_spec.mem_id is None:
            return False
        spans = []
        for spec in (lhs_spec, rhs_spec):
            if not spec.nbytes():
                return False
            start = spec.mem_offset or 0
            spans.append((start, start + spec.nbytes() - 1))
        return cls.has_overlap(*spans)

    def verify_storage_reuse(self, allow_lifetime_and_storage_overlap: bool = False) -> int:
        """Return how many pairs share bytes; raise where two are live at one step."""
        specs = collect_specs_from_nodes(
            self.graph_module.graph.nodes,
            self.graph_signature,
            not self.alloc_graph_input,
            not self.alloc_graph_output,
            not self.alloc_mutable_buffers,
            do_assertion=False,
        )
        shared = 0
        for one, other in combinations(specs, 2):
            if one.root()[0] is other.root()[0] or not self.storage_overlap(one, other):
                continue
            if not allow_lifetime_and_storage_overlap and self.lifetime_overlap(one, other):
                raise PlanError(f"{one!r} and {other!r} overlap in memory and in time")
            shared += 1
        return shared

    def verify_graph_input_output(self) -> None:
        """Raise unless inputs and outputs have memory exactly where they are to have it."""
        nodes = list(self.graph_module.graph.nodes)
        inputs = get_graph_input_tensors(nodes, self.graph_signature)
        outputs = get_graph_output_tensors(nodes) - inputs
        for what, specs, planned in (
            ("input", inputs, self.alloc_graph_input),
            ("output", outputs, self.alloc_graph_output),
        ):
            for spec in specs:
                if not spec.const and (spec.mem_id is not None) != planned:
                    state = "no memory" if planned else "memory"
                    raise PlanError(f"{what} {spec!r} has {state}")
