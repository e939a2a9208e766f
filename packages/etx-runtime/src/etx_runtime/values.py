# SPDX-License-Identifier: BSD-3-Clause
"""What the file says of a method's inputs, outputs and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from etx_runtime import pytree
from etx_runtime._native import MethodMeta, TensorInfo
from etx_runtime.errors import LoadError

if TYPE_CHECKING:
    from etx_runtime.constraints import Bound, Constraints

TENSOR_TAG = 1
KINDS = ("none", "tensor", "string", "float", "int", "bool")


class ValueInfo(NamedTuple):
    """An input or output of a method."""

    name: str
    kind: str
    """`tensor`, `int`, `float`, `bool`, `string`, `none` or `list`."""
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    """Of a tensor; the largest sizes where it is dynamic."""
    is_dynamic: bool = False
    nbytes: int = 0
    """Bytes at the largest sizes."""
    bounds: tuple[Bound | None, ...] = ()
    """What each dimension, or the value of an int, must be; None where its size is fixed."""

    def __str__(self) -> str:
        if self.shape is None:
            what = self.kind + "".join(f" {bound}" for bound in self.bounds)
        else:
            limits = self.bounds or (None,) * len(self.shape)
            mark = "<=" if self.is_dynamic and not self.bounds else ""
            plain = [f"{mark}{size}" for size in self.shape]
            sizes = [
                str(bound) if bound else size for size, bound in zip(plain, limits, strict=True)
            ]
            what = f"{self.dtype}[{', '.join(sizes)}]"
        return f"{self.name}: {what}" if self.name else what


class RequiredBytes(NamedTuple):
    """Memory of a method: what the loader takes, and the planned arenas by memory id from 1."""

    method: int
    planned: tuple[int, ...]

    @property
    def total(self) -> int:
        """All of it."""
        return self.method + sum(self.planned)


def describe_inputs(meta: MethodMeta, constraints: Constraints) -> tuple[ValueInfo, ...]:
    """Return the inputs with the names and bounds of `constraints`."""
    rows = []
    for index in range(meta.num_inputs()):
        name = constraints.names[index] if index < len(constraints.names) else ""
        own = {bound.dim: bound for bound in constraints.bounds if bound.input == index}
        tag = meta.input_tag(index)
        info = meta.input_tensor_meta(index) if tag == TENSOR_TAG else None
        rows.append(_describe(name, tag, info, own))
    return tuple(rows)


def describe_outputs(meta: MethodMeta) -> tuple[ValueInfo, ...]:
    """Return the outputs, named by where they lie in the result: `output['x'][0]`."""
    count = meta.num_outputs()
    try:
        spec = pytree.parse(meta.output_spec() or "")
        names = [f"output{path}" for path in pytree.leaf_paths(spec)]
    except LoadError:
        names = []
    if len(names) != count:
        names = ["output"] if count == 1 else [f"output[{index}]" for index in range(count)]
    rows = []
    for index, name in enumerate(names):
        tag = meta.output_tag(index)
        info = meta.output_tensor_meta(index) if tag == TENSOR_TAG else None
        rows.append(_describe(name, tag, info, {}))
    return tuple(rows)


def _describe(name: str, tag: int, info: TensorInfo | None, own: dict[Any, Bound]) -> ValueInfo:
    if info is None:
        kind = KINDS[tag] if tag < len(KINDS) else "list"
        return ValueInfo(name, kind, bounds=tuple(own.values()))
    shape = info.sizes()
    bounds = tuple(own.get(dim) for dim in range(len(shape))) if own else ()
    return ValueInfo(
        name, "tensor", info.dtype_name(), shape, info.is_dynamic(), info.nbytes(), bounds
    )
