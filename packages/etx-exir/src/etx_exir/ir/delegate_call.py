# SPDX-License-Identifier: BSD-3-Clause
"""A delegated part of a program: the module that holds its blob, and the node that calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import torch
from etx_schema import CompileSpec, Program
from torch import Tensor, nn
from torch._guards import active_fake_mode
from torch._higher_order_ops import executorch_call_delegate
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.export import ExportedProgram
from torch.fx import Interpreter, Node
from torch.utils import _pytree as pytree

from etx_exir.config import ExecutorchBackendConfig
from etx_exir.errors import ConfigError
from etx_exir.ir.data_store import NamedDataStoreOutput
from etx_exir.ir.dim_order import dim_order_of

__all__ = ["CALL_DELEGATE", "LoweredBackendModule", "executorch_call_delegate"]

CALL_DELEGATE = executorch_call_delegate


class Finished(Protocol):
    """A file in memory."""

    @property
    def buffer(self) -> bytes:
        """Its bytes."""

    @property
    def executorch_program(self) -> Program:
        """Its tables."""


class LoweredBackendModule(nn.Module):
    """What a backend made of a part of a program.

    `original_module` computes the same in eager mode; the delegate's inputs are its user inputs
    in order, the outputs its user outputs in order. Inside another module it stays one delegate
    when that is exported, strictly or not. `out_spec` is the form of what the module returns, a
    tuple unless it is given.
    """

    finish: ClassVar[Callable[[ExportedProgram, ExecutorchBackendConfig], Finished]]
    """Lowers and emits a program; `etx_exir.program` sets it."""

    def __init__(
        self,
        edge_program: ExportedProgram,
        backend_id: str,
        processed_bytes: bytes,
        compile_specs: Sequence[CompileSpec],
        named_data_store_output: NamedDataStoreOutput | Mapping[str, Any] | None = None,
        debug_handle_map: Mapping[Any, tuple[int, ...]] | None = None,
        out_spec: pytree.TreeSpec | None = None,
    ) -> None:
        super().__init__()
        self._out_spec = edge_program.call_spec.out_spec if out_spec is None else out_spec
        self._original = edge_program
        self._delegated = _Delegated(edge_program, self._compute)
        self._backend_id = backend_id
        self._processed_bytes = processed_bytes
        self._compile_specs = list(compile_specs)
        self._named_data = named_data_store_output
        self.meta: dict[str, Any] = {"debug_handle_map": dict(debug_handle_map or {})}

    @property
    def backend_id(self) -> str:
        """The name under which the runtime finds the backend."""
        return self._backend_id

    @property
    def processed_bytes(self) -> bytes:
        """The backend's blob."""
        return self._processed_bytes

    @property
    def compile_specs(self) -> list[CompileSpec]:
        """The options that the backend was given."""
        return self._compile_specs

    @property
    def original_module(self) -> ExportedProgram:
        """The program that was handed to the backend; its module returns a flat list."""
        return self._delegated

    @property
    def named_data_store_output(self) -> NamedDataStoreOutput | Mapping[str, Any]:
        """Blobs that the file stores by name next to the delegate's own."""
        return NamedDataStoreOutput() if self._named_data is None else self._named_data

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute what the delegate computes, in eager mode; while tracing, become one node."""
        outputs = executorch_call_delegate(self, *pytree.tree_leaves((args, kwargs)))
        return outputs if self._out_spec is None else pytree.tree_unflatten(outputs, self._out_spec)

    def buffer(self, config: ExecutorchBackendConfig | None = None) -> bytes:
        """Return a file whose method `forward` is just this delegate.

        Without `config` it is checked against no target: a delegate needs its backend there.
        """
        return self._finish(config).buffer

    def program(self, config: ExecutorchBackendConfig | None = None) -> Program:
        """Return the tables of such a file."""
        return self._finish(config).executorch_program

    def _finish(self, config: ExecutorchBackendConfig | None) -> Finished:
        examples = self._original.example_inputs
        if examples is None:
            raise ConfigError(
                f"the program that backend {self._backend_id!r} lowered has no example inputs to "
                "export this module with; call torch.export.export(lowered, inputs) and to_edge"
            )
        exported = torch.export.export(self, *examples)
        return type(self).finish(exported, config or ExecutorchBackendConfig(target=None))

    def _compute(self, *args: Any, **kwargs: Any) -> list[Any]:
        flat = pytree.tree_leaves((args, kwargs))
        fakes = (x.fake_mode for x in flat if isinstance(x, FakeTensor))
        mode = next(fakes, None) or active_fake_mode()
        return self._eager(*flat) if mode is None else self._fake(mode, *flat)

    def _eager(self, *args: Any) -> list[Any]:
        """Return what the partition's own program computes; its state is kept between calls."""
        if "_callable" not in self.__dict__:  # not a submodule: its weights are the delegate's
            self.__dict__["_callable"] = self._original.module(check_guards=False)
        flat = pytree.tree_unflatten(list(args), self._original.call_spec.in_spec)
        return list(pytree.tree_leaves(self.__dict__["_callable"](*flat[0], **flat[1])))

    def _fake(self, mode: FakeTensorMode, *args: Any) -> list[Any]:
        """Return the outputs without their data for inputs of these shapes."""
        graph = self._original.graph
        signature = self._original.graph_signature
        given = dict(zip(signature.user_inputs, args, strict=True))
        names = set(given)
        nodes: list[Node] = graph.find_nodes(op="placeholder")
        with mode:
            values = [
                given[n.name] if n.name in names else _of_this_mode(n.meta["val"]) for n in nodes
            ]
            results: Any = Interpreter(self._original.graph_module).run(*values)
        expected = list(zip(signature.output_specs, results, strict=True))
        returned: Any = graph.output_node().args[0]
        return [
            _laid_out(result, node)
            for (spec, result), node in zip(expected, returned, strict=True)
            if spec.kind.name == "USER_OUTPUT"
        ]

    def __deepcopy__(self, memo: dict[int, Any]) -> LoweredBackendModule:
        memo[id(self)] = self
        return self


def _of_this_mode(value: Tensor) -> Tensor:
    """Return a tensor of the same form that belongs to the fake mode in force."""
    shape, strides = tuple(map(int, value.shape)), tuple(map(int, value.stride()))
    return torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device)


def _laid_out(result: Any, node: Any) -> Any:
    """Return a delegate's output in the layout that its own program states."""
    value = node.meta["val"] if isinstance(node, Node) else None
    if not isinstance(value, Tensor) or not isinstance(result, Tensor):
        return result
    order = dim_order_of(value)
    inverse = [order.index(d) for d in range(value.dim())]
    return result.permute(order).contiguous().permute(inverse)


class _Delegated(ExportedProgram):
    """A program that a backend lowered: what torch's operator runs in the delegate's place."""

    def __init__(self, program: ExportedProgram, run: Callable[..., list[Any]]) -> None:
        self.__dict__.update(program.__dict__, _run=run)

    def module(self, check_guards: bool = True) -> Any:
        """Return what computes the delegate's outputs, in a flat list, from its inputs."""
        return self.__dict__["_run"]
