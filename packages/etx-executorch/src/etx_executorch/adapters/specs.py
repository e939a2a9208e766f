# SPDX-License-Identifier: BSD-3-Clause
"""Specs of tensors in `node.meta["spec"]`: what is planned, how large, and where it lies."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from etx_exir.ir.constants import Constants
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.dim_order import dim_order_of
from etx_exir.ir.layout import Bounds
from etx_exir.plan.blocks import align
from etx_schema import DeviceType, TensorShapeDynamism
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult
from torch.utils import _pytree as pytree

__all__ = ["ALIGNMENT", "DebugPass", "SpecPropPass", "TensorSpec", "make_spec", "specs_of"]

ALIGNMENT = 16


class TensorSpec:
    """A tensor as memory planning sees it; sizes that may change are at their upper bounds.

    `lifetime` is its first and last position in the graph. `storage_base` is a spec within which
    it lies, at `storage_base_offset`.
    """

    def __init__(
        self,
        dtype: torch.dtype,
        shape: Sequence[Any],
        layout: torch.layout = torch.strided,
        is_sparse: bool = False,
        const: bool = False,
        requires_grad: bool = False,
        extra_tensor_info: Any = None,
    ) -> None:
        bounds = Bounds({})
        self.scalar_type = dtype
        self.shape = [bounds.upper(size, lambda: "a spec") for size in shape]
        self.shape_dynamism = TensorShapeDynamism(
            int(any(not isinstance(size, int) for size in shape))
        )
        self.dim_order: Any = tuple(range(len(self.shape)))
        self.layout, self.is_sparse = layout, is_sparse
        self.const, self.requires_grad = const, requires_grad
        self.extra_tensor_info = extra_tensor_info
        self.storage: Any = None
        self.device, self.device_index = DeviceType.CPU, 0
        self.alignment = ALIGNMENT
        self.storage_base: TensorSpec | None = None
        self.storage_base_offset = 0
        self.init_mem_planning_fields()

    @classmethod
    def from_tensor(cls, tensor: Tensor, const: bool = False) -> TensorSpec:
        """Describe a tensor; a constant keeps its memory."""
        spec = cls(
            tensor.dtype,
            tensor.shape,
            tensor.layout,
            tensor.is_sparse,
            const,
            tensor.requires_grad,
        )
        spec.dim_order = dim_order_of(tensor)
        if const and not isinstance(tensor, torch._subclasses.FakeTensor):
            spec.storage = tensor.untyped_storage()
        return spec

    def init_mem_planning_fields(self) -> None:
        """Forget where the tensor lies."""
        self.lifetime: list[Any] = [None, None]
        self.mem_id: int | None = None
        self.mem_obj_id: int | None = None
        self.mem_offset: int | None = None

    @property
    def dtype(self) -> torch.dtype:
        """The type of its elements."""
        return self.scalar_type

    @property
    def is_upper_bound_tensor(self) -> bool:
        """Tell whether its sizes may be smaller than `shape`."""
        return self.shape_dynamism == TensorShapeDynamism.DYNAMIC_BOUND

    @property
    def is_static_shape_tensor(self) -> bool:
        """Tell whether its sizes are `shape`."""
        return self.shape_dynamism == TensorShapeDynamism.STATIC

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    def nbytes(self) -> int:
        """Return the bytes of its elements."""
        return self.numel() * self.scalar_type.itemsize

    @property
    def allocated_memory(self) -> int:
        """The bytes it is given: a multiple of the alignment."""
        return align(self.nbytes(), self.alignment)

    def realign(self, new_alignment: int) -> int:
        """Set the alignment and return the bytes that the tensor is given then."""
        self.alignment = new_alignment
        return self.allocated_memory

    def root(self) -> tuple[TensorSpec, int]:
        """Return the spec that owns the memory, and the offset within it."""
        spec, offset = self, 0
        while spec.storage_base is not None:
            offset += spec.storage_base_offset
            spec = spec.storage_base
        return spec, offset

    def debug(self) -> str:
        """Return all that is known of it, a line a field."""
        return "\n".join(f"{name}: {value}" for name, value in vars(self).items())

    def __repr__(self) -> str:
        where = f", id {self.mem_id} at {self.mem_offset}" if self.mem_id is not None else ""
        return f"TensorSpec({self.scalar_type}, {self.shape}, lives {self.lifetime}{where})"


def make_spec(value: Any, const: bool = False) -> Any:
    """Return a spec for each tensor in `value`, None for what is not a tensor."""

    def spec(leaf: Any) -> Any:
        return TensorSpec.from_tensor(leaf, const) if isinstance(leaf, Tensor) else None

    return pytree.tree_map(spec, value)


def specs_of(value: Any) -> list[TensorSpec]:
    """Return the specs in `node.meta["spec"]` of a node, or in a tree of specs."""
    tree = value.meta.get("spec") if isinstance(value, Node) else value
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, TensorSpec)]


class SpecPropPass:
    """Give each node of a graph, and of those nested in it, its specs.

    What takes no memory of its own has the spec of what it is a part of: items of tuples, and
    results of operators that work in place.
    """

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __call__(self, graph_module: GraphModule) -> PassResult:
        """Set `meta["spec"]`."""
        for module in graph_modules(graph_module):
            for node in module.graph.nodes:
                node.meta["spec"] = _spec(module, node)
        return PassResult(graph_module, True)

    call = __call__

    def update_placeholder_tensor_specs(
        self, exported_program: ExportedProgram, graph_module: GraphModule
    ) -> None:
        """Mark the inputs that hold constants, and keep their memory."""
        tensors = {node.name: tensor for node, tensor in Constants(exported_program).items()}
        for node in graph_module.graph.find_nodes(op="placeholder"):
            if node.name in tensors:
                node.meta["spec"] = TensorSpec.from_tensor(tensors[node.name], const=True)


def _spec(module: GraphModule, node: Node) -> Any:
    if node.op == "output":
        return pytree.tree_map_only(Node, lambda arg: arg.meta["spec"], node.args[0])
    if node.op == "get_attr":
        value = getattr(module, str(node.target), None)
        return make_spec(value, const=True) if isinstance(value, Tensor) else None
    if node.target is operator.getitem:
        source, index = node.args
        return source.meta["spec"][index]  # type: ignore[union-attr]
    written = next(_written(node), None)
    return make_spec(node.meta.get("val")) if written is None else written.meta["spec"]


def _written(node: Node) -> Iterator[Node]:
    """Yield the arguments that a call writes to and returns."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable or not schema.returns:
        return
    for i, argument in enumerate(schema.arguments):
        given = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
        written = argument.alias_info is not None and argument.alias_info.is_write
        if written and isinstance(given, Node) and not argument.is_out:
            yield given


class DebugPass:
    """Print a graph with the specs of its nodes."""

    def __init__(self, msg: str = "", *, show_spec: bool = False, **_: Any) -> None:
        self.msg, self.show_spec = msg, show_spec

    def __call__(self, graph_module: GraphModule) -> PassResult:
        """Print it, and leave it."""
        if self.msg:
            print(self.msg)
        for module in graph_modules(graph_module):
            for node in module.graph.nodes:
                print(node.format_node())
                if self.show_spec:
                    print(*(f"    {spec!r}" for spec in specs_of(node)), sep="\n")
        return PassResult(graph_module, False)

    call = __call__
