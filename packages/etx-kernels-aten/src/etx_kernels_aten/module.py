# SPDX-License-Identifier: BSD-3-Clause
"""A program as a module of a larger torch model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import etx_runtime
import torch
from etx_runtime.model import Signature
from torch import Tensor, nn

__all__ = ["Module"]

_numbers = count()
_modules: WeakValueDictionary[int, Module] = WeakValueDictionary()


class Module(nn.Module):
    """The method `forward` of a program, called with what its module took.

    Its mutable buffers are in `state_dict()`. In `torch.compile` a call is one opaque operator,
    whose results have the sizes of the file; sizes that the file leaves open are unbacked, up to
    their bounds. There is no gradient: backward through a call is an error of torch.

    Errors: those of `etx_runtime.load`; ExecutionError and InputError of a call.
    """

    _calls: Tensor

    def __init__(
        self,
        path: Any,
        *,
        kernels: str | Sequence[str] = "aten",
        data: Any = (),
    ) -> None:
        super().__init__()
        self._open(etx_runtime.load(path, kernels=kernels, data=data, outputs="torch"))
        self.register_buffer("_calls", torch.zeros((), dtype=torch.int64), persistent=False)

    def _open(self, model: etx_runtime.Model) -> None:
        self._model = model
        self._method = model.method()
        self._signature = Signature(self._method)
        meta = self._method.metadata
        self._kinds = [info.kind for info in self._method.inputs]
        self._results = [meta.output_tensor_meta(i) for i in range(meta.num_outputs())]
        self._has_state = bool(self._method.state_names)
        self._number = next(_numbers)
        _modules[self._number] = self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program."""
        flat = self._signature.flatten(args, kwargs)
        if len(flat) != len(self._kinds):
            raise etx_runtime.InputError(
                f"the method takes {len(self._kinds)} inputs, got {len(flat)}"
            )
        pairs = list(zip(self._kinds, flat, strict=True))
        tensors = [torch.as_tensor(value) for kind, value in pairs if kind == "tensor"]
        ints = [int(value) for kind, value in pairs if kind == "int"]
        floats = [float(value) for kind, value in pairs if kind == "float"]
        if self._has_state:
            calls, *found = call_with_state(self._calls, self._number, tensors, ints, floats)
            self._calls.copy_(calls)
        else:
            found = call(self._number, tensors, ints, floats)
        return self._signature.unflatten(found)

    def execute(
        self, tensors: Sequence[Tensor], ints: Sequence[int], floats: Sequence[float]
    ) -> list[Tensor]:
        """Run the program on the flat inputs of each kind; others are as they were exported."""
        queues = {"tensor": iter(tensors), "int": iter(ints), "float": iter(floats)}
        inputs = [
            next(queues[kind]) if kind in queues else self._method.input_value(index)
            for index, kind in enumerate(self._kinds)
        ]
        return self._model.run_method("forward", [_given(value) for value in inputs])

    def results_like_file(self) -> list[Tensor]:
        """Return tensors without elements that have the dtypes and sizes of the results."""
        return [_stated(info) for info in self._results]

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, value in self._method.get_state().items():
            destination[prefix + name] = torch.as_tensor(value)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        names = self._method.state_names
        given = {name: state_dict[prefix + name] for name in names if prefix + name in state_dict}
        missing_keys += [prefix + name for name in names if name not in given and strict]
        known = {prefix + name for name in names}
        mine = [key for key in state_dict if key.startswith(prefix)]
        unexpected_keys += [key for key in mine if key not in known and strict]
        try:
            self._method.set_state({k: v.detach().cpu() for k, v in given.items()})
        except etx_runtime.InputError as error:
            error_msgs.append(str(error))

    def __getstate__(self) -> dict[str, Any]:
        left_out = ("_method", "_signature", "_results", "_number")
        return {key: value for key, value in self.__dict__.items() if key not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._open(self._model)


def _given(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _stated(info: etx_runtime.TensorInfo) -> Tensor:
    sizes: Sequence[Any] = info.sizes()
    if info.is_dynamic():
        sizes = [_unbacked(size) for size in sizes]
    return torch.empty(sizes, dtype=getattr(torch, info.dtype_name()))


def _unbacked(bound: int) -> Any:
    return torch.library.get_ctx().new_dynamic_size(min=0, max=max(bound, 2))


@torch.library.custom_op("etx_aten::call", mutates_args=())
def call(
    module: int, tensors: Sequence[Tensor], ints: Sequence[int], floats: Sequence[float]
) -> list[Tensor]:
    """Run the program of a Module, by its number."""
    return _modules[module].execute(tensors, ints, floats)


@torch.library.custom_op("etx_aten::call_with_state", mutates_args=())
def call_with_state(
    calls: Tensor,
    module: int,
    tensors: Sequence[Tensor],
    ints: Sequence[int],
    floats: Sequence[float],
) -> list[Tensor]:
    """Run a program that has mutable buffers; the first result is the number of its calls so far.

    The next call takes that number, so that compilers neither leave calls out nor reorder them.
    """
    return [calls + 1, *_modules[module].execute(tensors, ints, floats)]


@call.register_fake
def _(module: int, tensors: Any, ints: Any, floats: Any) -> list[Tensor]:
    return _modules[module].results_like_file()


@call_with_state.register_fake
def _(calls: Any, module: int, tensors: Any, ints: Any, floats: Any) -> list[Tensor]:
    return [torch.empty_like(calls), *_modules[module].results_like_file()]
