# SPDX-License-Identifier: BSD-3-Clause
"""`ExportPass`: passes that retrace a graph call by call, over the class that torch has of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from etx_exir import executorch_call_delegate
from etx_exir.passes import Pass
from torch._export.pass_base import (
    ExportPassBaseError,
    _ExportPassBaseDeprecatedDoNotUse,
)
from torch._export.pass_infra.node_metadata import NodeMetadata
from torch._export.pass_infra.proxy_value import ProxyValue
from torch._higher_order_ops.utils import _unstack_pytree
from torch.export import ExportedProgram
from torch.fx import GraphModule
from torch.fx.passes.infra.pass_base import PassResult

__all__ = [
    "ExportPass",
    "ExportPassBaseError",
    "ExportedProgramPassBase",
    "ExportedProgramPassResult",
    "NodeMetadata",
    "PassManager",
    "ProxyValue",
    "map_args",
]

higher_order = torch.ops.higher_order


class ExportPass(_ExportPassBaseDeprecatedDoNotUse):
    """Retrace a graph; a subclass overrides the calls that it changes.

    `call_operator`, `call_sym`, `call_cond`, `call_while`, `call_map`, `call_scan`,
    `call_getitem`, `call_delegate`, `call_submodule`, `placeholder` and `output` receive values
    with their node and their fake data, and metadata that the new node takes over.
    """

    class ExportInterpreter(_ExportPassBaseDeprecatedDoNotUse.ExportInterpreter):
        """Sends the calls of each node to the pass."""

        callback: Any

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            """Send the calls that torch's class leaves to all passes alike."""
            meta = NodeMetadata(self.node.meta)
            if target is executorch_call_delegate:
                lowered, *inputs = args
                return self.callback.call_delegate(lowered, tuple(inputs), kwargs, meta)
            if target is higher_order.while_loop:
                return self.callback.call_while(*args, meta)
            if target is higher_order.scan:
                return self.callback.call_scan(*args, meta)
            return super().call_function(target, args, kwargs)

    def call_delegate(
        self, lowered_module: Any, args: Any, kwargs: dict[str, Any], meta: NodeMetadata
    ) -> ProxyValue[Any]:
        """Call a delegate; a subclass may change the arguments."""
        return self._fx(
            "call_function", executorch_call_delegate, (lowered_module, *args), kwargs, meta
        )

    def call_while(
        self,
        cond_fn: GraphModule,
        body_fn: GraphModule,
        carried_inputs: Sequence[Any],
        additional_inputs: Sequence[Any],
        meta: NodeMetadata,
    ) -> ProxyValue[Any]:
        """Run the pass on both graphs of a loop, then call it."""
        inputs = (*carried_inputs, *additional_inputs)
        graphs = [self.call_submodule(each, inputs).graph_module for each in (cond_fn, body_fn)]
        args = (*graphs, tuple(carried_inputs), tuple(additional_inputs))
        return self._fx("call_function", higher_order.while_loop, args, {}, meta)

    def call_scan(
        self,
        combine_fn: GraphModule,
        init: Sequence[Any],
        xs: Sequence[Any],
        additional_inputs: Sequence[Any],
        meta: NodeMetadata,
    ) -> ProxyValue[Any]:
        """Run the pass on the graph of a scan, then call it."""
        first = _unstack_pytree([x.data for x in xs])[0]  # type: ignore[no-untyped-call]
        inner = self.call_submodule(combine_fn, (*init, *first, *additional_inputs))
        args = (inner.graph_module, list(init), list(xs), list(additional_inputs))
        return self._fx("call_function", higher_order.scan, args, {}, meta)

    def call_size_operator_all(self, value: ProxyValue[Any], meta: NodeMetadata) -> list[Any]:
        """Return all sizes of a tensor: numbers, and reads of those that may change."""
        sizes = value.to_tensor().shape
        return [
            size
            if isinstance(size, int)
            else self.call_sym(torch.ops.aten.sym_size.int, (value, dim), meta)
            for dim, size in enumerate(sizes)
        ]

    def call_submodule(self, graph_module: GraphModule, inputs: tuple[Any, ...]) -> PassResult:
        """Run the pass on a graph; what the whole graph carries besides its nodes is kept."""
        result = super().call_submodule(graph_module, inputs)
        result.graph_module.meta.update(graph_module.meta)
        return result


class ExportedProgramPassBase(Pass):
    """A pass over a whole exported program: `call` returns a program, changed or not."""

    def __call__(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Check, change, check."""
        self.requires(exported_program)
        result = self.call(exported_program)
        self.ensures(result.exported_program)
        return result

    @abstractmethod
    def call(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Return the changed program."""

    def requires(self, exported_program: ExportedProgram) -> None:
        """Check what the pass expects."""

    def ensures(self, exported_program: ExportedProgram) -> None:
        """Check what the pass promises."""

    def apply(self, program: ExportedProgram) -> bool:
        """Let ETX run the pass: the program becomes what `call` returns."""
        result = self(program)
        if result.exported_program is not program:
            program.__dict__.update(result.exported_program.__dict__)
        return result.modified


@dataclass
class ExportedProgramPassResult:
    """A program, and whether the pass changed it."""

    exported_program: ExportedProgram
    modified: bool


class PassManager:
    """Run passes of a graph module one after the other."""

    def __init__(self, passes: Sequence[Any] | Sequence[Sequence[Any]] = ()) -> None:
        self.passes: list[Callable[[GraphModule], Any]] = []
        for item in passes:
            self.passes += (
                list(item)
                if isinstance(item, (list, tuple))
                else [cast("Callable[[GraphModule], Any]", item)]
            )

    def __call__(self, module: GraphModule) -> PassResult:
        """Return the module, and whether a pass changed it."""
        modified = False
        for item in self.passes:
            result = item(module)
            module = getattr(result, "graph_module", None) or module
            modified |= bool(getattr(result, "modified", True))
        return PassResult(module, modified)


def map_args(
    op: torch._ops.OpOverload,
    fn: Callable[[Any, Any], Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Apply `fn(argument, its entry in the schema)` to every argument, to items of tensor lists."""

    def changed(value: Any, entry: Any) -> Any:
        tensors = "Tensor" in str(entry.type)
        if tensors and isinstance(value, (list, tuple)):
            return type(value)(fn(item, entry) for item in value)
        return fn(value, entry)

    entries = op._schema.arguments
    by_name = {entry.name: entry for entry in entries}
    positional = tuple(changed(value, entry) for value, entry in zip(args, entries, strict=False))
    return positional, {name: changed(value, by_name[name]) for name, value in kwargs.items()}
