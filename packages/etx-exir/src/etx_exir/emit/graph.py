# SPDX-License-Identifier: BSD-3-Clause
"""Nodes of a graph as steps: operators, views, and what only exists in Python."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch._prims_common import is_contiguous_or_false
from torch.fx import GraphModule, Node

from etx_exir.emit import control_flow, delegates, mutating, symbolic
from etx_exir.emit.arguments import encode
from etx_exir.emit.method import ABSENT, MethodEmitter, Reference
from etx_exir.emit.views import ALIASING, SAME_ORDER, aliases
from etx_exir.errors import EmitError, UnboundedError
from etx_exir.ir.dim_order import NAMESPACE
from etx_exir.ir.layout import same_sizes, shape_of
from etx_exir.ir.mutable_state import KEEPS_ARGUMENTS
from etx_exir.ir.ops import arguments
from etx_exir.ir.out_variants import OutVariant, out_variant
from etx_exir.ir.stand_in import STAND_IN
from etx_exir.plan.linear_ir import Kind, Place

aten = torch.ops.aten

VIEW_AT = "etx::view_at"

CHECKS = frozenset(
    {
        "_assert_async",
        "_assert_scalar",
        "_assert_tensor_metadata",
        "sym_constrain_range",
        "sym_constrain_range_for_size",
    }
)


def emit_nodes(emitter: MethodEmitter, module: GraphModule) -> list[Reference]:
    """Append the steps of a graph whose placeholders are bound; return its outputs."""
    results: list[Reference] = []
    for node in module.graph.nodes:
        emitter.current = node
        if node.op == "call_function":
            emitter.environment[node] = _noted_call(emitter, module, node)
        elif node.op == "get_attr":
            emitter.environment[node] = _attribute(emitter, module, node)
        elif node.op == "output":
            results = [_noted_output(emitter, item) for item in _flat(node.args[0])]
        elif node.op != "placeholder":
            raise EmitError(f"{emitter.where()}: a node of kind {node.op} cannot be emitted")
    return results


def _noted_call(emitter: MethodEmitter, module: GraphModule, node: Node) -> Reference:
    """Append the steps of a call; what is wrong with it is kept, for all to be told at once."""
    try:
        return _call(emitter, module, node)
    except EmitError as error:
        emitter.note(error)
        if not isinstance(error, UnboundedError):
            return _stand_in(emitter, node)
    except Exception:
        if not emitter.gaps:
            raise
        return _stand_in(emitter, node)
    return _noted_call(emitter, module, node)


def _flat(outputs: Any) -> Sequence[Any]:
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def _noted_output(emitter: MethodEmitter, item: Any) -> Reference:
    try:
        return _output(emitter, item)
    except EmitError as error:
        emitter.note(error)
        return emitter.values.null()


def _output(emitter: MethodEmitter, item: Any) -> Reference:
    if isinstance(item, Node):
        return emitter.environment[item]
    return encode(emitter.values, emitter.lookup, item, None)


def _attribute(emitter: MethodEmitter, module: GraphModule, node: Node) -> Reference:
    value: Any = module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return emitter.constant(value) if isinstance(value, torch.Tensor) else value


def _call(emitter: MethodEmitter, module: GraphModule, node: Node) -> Reference:
    target = node.target
    if target is operator.getitem:
        source, index = node.args
        return emitter.environment[source][index]  # type: ignore[index]
    if isinstance(target, HigherOrderOperator):
        if delegates.lowered_module(module, node) is not None:
            return delegates.emit(emitter, module, node)
        if target in mutating.WRAPPERS:
            return mutating.emit(emitter, node)
        return control_flow.emit(emitter, node, emit_nodes)
    if target is STAND_IN:
        raise EmitError(f"{emitter.where()}: {node.args[2]}")
    if isinstance(target, OpOverload):
        if target.namespace == "aten" and target._schema.name[6:] in CHECKS:
            return None
        if symbolic.is_symbolic(node):
            return symbolic.emit(emitter, node)
        view = _view(emitter, node)
        return operator_call(emitter, node) if view is None else view
    if symbolic.is_symbolic(node):
        return symbolic.emit(emitter, node)
    raise EmitError(f"{emitter.where()}: {target} is not an operator that a kernel can run")


def _view(emitter: MethodEmitter, node: Node) -> Reference:
    """Return the values of a view that costs nothing, or None."""
    if emitter.copies_views or node.target not in ALIASING or not isinstance(node.args[0], Node):
        return None
    source = emitter.lookup(node.args[0])
    fakes = node.meta["val"]
    many = isinstance(fakes, (list, tuple))
    fakes = list(fakes) if many else [fakes]
    shapes = [shape_of(fake, emitter.bounds, emitter.where) for fake in fakes]
    place = emitter.listing.places.get(source)
    offsets = aliases(node, emitter.shapes[source], shapes)
    if offsets is None or place is None:
        return None if many else _dynamic_view(emitter, node, source, place)
    if place.storage.kind is Kind.CALLER and node.target in SAME_ORDER:
        return _dynamic_view(emitter, node, source, place)
    if place.storage.kind is Kind.CALLER or (place.storage.kind is Kind.CONSTANT and any(offsets)):
        return _parts(emitter, node, source, place, offsets)
    results = [
        emitter.tensor(fake, place.storage, place.offset + offset)
        for fake, offset in zip(fakes, offsets, strict=True)
    ]
    return results if many else results[0]


def _parts(
    emitter: MethodEmitter, node: Node, source: int, place: Place, offsets: list[int]
) -> Reference:
    """Return values that get part of the source's memory at run time, None where copies are needed.

    What the caller reads is a copy.
    """
    if f"{VIEW_AT}.default" not in emitter.kernels:
        return None
    many = isinstance(node.meta["val"], (list, tuple))
    readers = [user for item in node.users for user in item.users] if many else node.users
    if any(reader.op == "output" for reader in readers):
        return None
    results = []
    fakes = node.meta["val"] if many else [node.meta["val"]]
    for fake, offset in zip(fakes, offsets, strict=True):
        index = emitter.tensor(fake, None)
        shape = emitter.shapes[index]
        first = emitter.values.integer(offset // shape.itemsize)
        emitter.listing.places[index] = Place(place.storage, place.offset + offset, shape.nbytes)
        emitter.call(VIEW_AT, "default", [source, first, index], [source], (), [index])
        results.append(index)
    return results if many else results[0]


def _dynamic_view(
    emitter: MethodEmitter, node: Node, source: int, place: Place | None
) -> Reference:
    """Return the value of a view that is made at run time, or None where a copy is needed."""
    fake, shape = node.meta["val"], emitter.shapes[source]
    result = shape_of(fake, emitter.bounds, emitter.where)
    if node.target not in SAME_ORDER or not shape.contiguous or not result.contiguous:
        return None
    planned = place is not None and place.storage.kind is Kind.PLANNED
    if not planned and any(user.op == "output" for user in node.users):
        return None
    sizes = symbolic.view_sizes(emitter, node, source)
    if sizes is None or place is None:
        return None
    index = emitter.tensor(fake, place.storage if planned else None, place.offset)
    if not planned:
        emitter.listing.places[index] = Place(place.storage, place.offset, shape.nbytes)
    args = [source, emitter.values.int_list(sizes), index]
    emitter.call("executorch_prim::et_view", "default", args, [source, *sizes], (), [index])
    return index


def operator_call(emitter: MethodEmitter, node: Node) -> Reference:
    """Append the out variant of an operator and return its results."""
    target = node.target
    assert isinstance(target, OpOverload)
    variant = out_variant(target)
    if variant is None:
        return _unsupported(emitter, node, target)
    args = _arguments(emitter, node, variant)
    reads = list(args)
    fakes = node.meta["val"]
    many = isinstance(fakes, (list, tuple))
    results = list(fakes) if many else [fakes]
    outs = [
        emitter.fresh(ABSENT) if fake is None else emitter.fresh(fake, _order(emitter, node, fake))
        for fake in results
    ]
    if variant.out_list:
        out_list = emitter.values.tensor_list(outs)
        args += [out_list, out_list]
    else:
        args += outs
        args.append(emitter.values.tensor_list(outs) if many else outs[0])
    step = emitter.call(variant.name, variant.overload, args, _deep(emitter, reads), outs)
    if not many and KEEPS_ARGUMENTS not in node.meta and emitter.may_overwrite(step.op):
        step.sharable = _sharable(emitter, reads, outs[0])
    given = [emitter.values.null() if r is None else o for r, o in zip(results, outs, strict=True)]
    return given if many else given[0]


def _unsupported(emitter: MethodEmitter, node: Node, target: OpOverload) -> Reference:
    """Note that `node` cannot be stored, and go on to find what else cannot."""
    name = target._schema.name
    hint = (
        f"register one with torch.library ({name}.out: the same arguments, then"
        " `*, Tensor(a!) out`), decompose the operator, or rewrite the model without it"
    )
    if target.namespace == "aten":
        hint = "decompose the operator, delegate it to a backend, or rewrite the model without it"
    emitter.gaps.add(f"{target} has no out variant", emitter.name, node, hint, "operator", name)
    return _stand_in(emitter, node)


def _stand_in(emitter: MethodEmitter, node: Node) -> Reference:
    """Return values of the kinds that `node` computes, for what follows to be looked at too."""
    fakes = node.meta.get("val")
    if isinstance(fakes, (list, tuple)):
        return [_of_kind(emitter, fake) for fake in fakes]
    return _of_kind(emitter, fakes)


def _of_kind(emitter: MethodEmitter, fake: Any) -> Reference:
    if isinstance(fake, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return symbolic.slot(emitter, fake)
    return emitter.stand_in(fake) if isinstance(fake, torch.Tensor) else emitter.values.null()


def _order(emitter: MethodEmitter, node: Node, fake: torch.Tensor) -> tuple[int, ...] | None:
    """Return the dim order of a result, None for that of `fake`.

    Of torch's operators those of dim_order alone change the layout: what comes from contiguous
    tensors is contiguous, whatever strides eager mode would have chosen. What is not torch's says
    it by its fake.
    """
    namespace = getattr(node.target, "namespace", "aten")
    is_image = fake.dim() == 4 and fake.is_contiguous(memory_format=torch.channels_last)
    if namespace == NAMESPACE or (namespace != "aten" and is_image and _is_contiguous(node)):
        return None
    for source in node.all_input_nodes:
        reference = emitter.environment[source]
        shape = emitter.shapes.get(reference) if isinstance(reference, int) else None
        if shape is not None and not shape.contiguous:
            return None
    return tuple(range(fake.dim()))


def _is_contiguous(node: Node) -> bool:
    """Return whether all tensors that `node` reads are contiguous in eager mode too."""
    fakes = [source.meta.get("val") for source in node.all_input_nodes]
    return all(is_contiguous_or_false(fake) for fake in fakes if isinstance(fake, torch.Tensor))


def _arguments(emitter: MethodEmitter, node: Node, variant: OutVariant) -> list[int]:
    given = arguments(node)
    encoded = []
    for argument in variant.arguments:
        value = given.get(argument.name, argument.default)
        if isinstance(value, (bool, int, float)) and _takes_tensor(argument.type):
            encoded.append(emitter.constant(_number(value)))
        else:
            encoded.append(encode(emitter.values, emitter.lookup, value, argument.type))
    return encoded


def _takes_tensor(kind: Any) -> bool:
    return str(kind) in ("Tensor", "Optional[Tensor]")


def _number(value: float) -> torch.Tensor:
    """Return a number as the 0-dim tensor that promotes as it does."""
    if not isinstance(value, float):
        return torch.tensor(value)
    single = torch.tensor(value, dtype=torch.float32)
    exact = single.item() == value or abs(value) < 3e38 or value != value
    return single if exact else torch.tensor(value, dtype=torch.float64)


def _deep(emitter: MethodEmitter, args: Sequence[int]) -> list[int]:
    """Return `args` with the items of tensor lists."""
    found: list[int] = []
    for index in args:
        items = getattr(emitter.values.items[index].val, "items", None)
        found.append(index)
        kind = type(emitter.values.items[index].val).__name__
        if items and kind in ("TensorList", "OptionalTensorList"):
            found.extend(item for item in items if item >= 0)
    return found


def _sharable(
    emitter: MethodEmitter, reads: Sequence[int], out: int
) -> tuple[tuple[int, int], ...]:
    """Return which arguments `out` may overwrite element by element."""
    expected, shape = emitter.fakes[out], emitter.shapes[out]
    pairs = []
    for index in reads:
        fake = emitter.fakes.get(index)
        if (
            fake is not None
            and index in emitter.listing.places
            and fake.dtype == expected.dtype
            and emitter.shapes[index].dim_order == shape.dim_order
            and same_sizes(fake.shape, expected.shape)
        ):
            pairs.append((index, out))
    return tuple(pairs)


__all__ = ["emit_nodes", "operator_call"]
