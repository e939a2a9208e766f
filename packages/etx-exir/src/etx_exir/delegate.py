# SPDX-License-Identifier: BSD-3-Clause
"""A delegated part of a program: the module that holds its blob, and the node that calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from etx_schema import CompileSpec
from torch import nn
from torch._higher_order_ops.utils import autograd_not_implemented
from torch._ops import HigherOrderOperator
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

__all__ = ["CALL_DELEGATE", "LoweredBackendModule", "executorch_call_delegate"]


class LoweredBackendModule(nn.Module):
    """What a backend made of a part of a program.

    `original_module` computes the same in eager mode; the delegate's inputs are its user inputs
    in order, the outputs its outputs in order.
    """

    def __init__(
        self,
        edge_program: ExportedProgram,
        backend_id: str,
        processed_bytes: bytes,
        compile_specs: Sequence[CompileSpec],
        named_data_store_output: dict[str, Any] | None = None,
        debug_handle_map: dict[int, tuple[int, ...]] | None = None,
    ) -> None:
        super().__init__()
        self._original = edge_program
        self._backend_id = backend_id
        self._processed_bytes = processed_bytes
        self._compile_specs = list(compile_specs)
        self._named_data = dict(named_data_store_output or {})
        self._callable: nn.Module | None = None
        self.meta: dict[str, Any] = {"debug_handle_map": debug_handle_map or {}}

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
        """The program that was handed to the backend."""
        return self._original

    @property
    def named_data_store_output(self) -> dict[str, Any]:
        """Blobs that the file stores by name next to the delegate's own."""
        return self._named_data

    def forward(self, *args: Any) -> Any:
        """Compute what the delegate computes, in eager mode."""
        if self._callable is None:
            self._callable = self._original.module(check_guards=False)
        outputs = self._callable(*args)
        return list(pytree.tree_leaves(outputs))

    def __deepcopy__(self, memo: dict[int, Any]) -> LoweredBackendModule:
        memo[id(self)] = self
        return self


class ExecutorchCallDelegate(HigherOrderOperator):
    """``executorch_call_delegate(lowered_module, *inputs) -> list of outputs``."""

    def __init__(self) -> None:
        super().__init__("executorch_call_delegate")  # type: ignore[no-untyped-call]

    def __call__(self, lowered_module: LoweredBackendModule, *args: Any) -> Any:
        """Dispatch the call; eager and fake tensors run the original module."""
        return super().__call__(lowered_module, *args)  # type: ignore[no-untyped-call]


executorch_call_delegate = ExecutorchCallDelegate()
CALL_DELEGATE = executorch_call_delegate

executorch_call_delegate.py_autograd_impl(
    autograd_not_implemented(executorch_call_delegate, deferred_error=True)
)


@executorch_call_delegate.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)
def _run(lowered_module: LoweredBackendModule, *args: Any) -> Any:
    return lowered_module(*args)


@executorch_call_delegate.py_impl(torch._subclasses.FakeTensorMode)
def _run_fake(
    mode: torch._subclasses.FakeTensorMode, lowered_module: LoweredBackendModule, *args: Any
) -> Any:
    output = next(iter(reversed(lowered_module.original_module.graph.nodes)))
    with mode:
        return [
            mode.from_tensor(leaf.meta["val"])
            if leaf.meta["val"].fake_mode is not mode
            else leaf.meta["val"]
            for leaf in output.args[0]
        ]
