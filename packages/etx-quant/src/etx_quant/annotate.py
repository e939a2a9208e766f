# SPDX-License-Identifier: BSD-3-Clause
"""What of a node is quantized: an annotation by its row and its configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import (
    FixedQParamsQuantizationSpec,
    QuantizationAnnotation,
    QuantizationConfig,
    QuantizationSpec,
    QuantizationSpecBase,
    SharedQuantizationSpec,
)

from etx_quant.constants import tensor_of
from etx_quant.errors import QuantizationError
from etx_quant.functions import function_of, is_pointwise
from etx_quant.observers import PerTokenObserver, TableObserver, WeightObserver
from etx_quant.ranges import RangeObserver, ScoresObserver
from etx_quant.rows import (
    CLAMPS,
    FEATURE_NORMS,
    FROM_MINUS_ONE_TO_ONE,
    HIDDEN,
    NORMS,
    ROWS,
    Arithmetic,
    Compared,
    Moved,
    Recurrent,
    Row,
    Split,
    Table,
    Weighted,
)

__all__ = [
    "INNER",
    "KEY",
    "annotate_function",
    "annotate_node",
    "is_static",
    "layer_of",
    "move_forward",
]

KEY = "quantization_annotation"
INNER = "is_inside_of_function"
"""Of operators that are quantized as one: False for the last."""
LARGE = 2.0**16
"""A constant beyond it is a mask or a sentinel: its range would leave nothing for other values."""
CHOICE = Arithmetic(is_xnnpack=False)
PADS_WITH_OWN = ("reflect", "replicate", "circular")
aten = torch.ops.aten


def annotate_node(node: Node, row: Row, config: QuantizationConfig, model: GraphModule) -> None:
    """Annotate ``node`` where its row and configuration go together and its inputs allow it."""
    if KEY in node.meta or not _fits(row, config) or (row.is_inplace and _is_read_later(node)):
        return
    ANNOTATORS[type(row)](node, row, config, model)


def _fits(row: Row, config: QuantizationConfig) -> bool:
    """Tell whether ``config`` is one for operators of this row."""
    is_table = observer_of(config.weight) is TableObserver
    if isinstance(row, Table) and row.is_whole and is_static(config.output_activation):
        return True
    if isinstance(row, Table) or is_table:
        return isinstance(row, Table) and is_table
    if is_static(config.input_activation) or isinstance(row, Recurrent):
        return True
    is_measured = config.input_activation is not None and config.input_activation.is_dynamic
    return isinstance(row, Weighted) and (row.is_matrix or is_measured)


def observer_of(spec: QuantizationSpec | None) -> Any:
    """Return the class of the observer that ``spec`` makes."""
    made = None if spec is None else spec.observer_or_fake_quant_ctr
    return getattr(getattr(made, "p", None), "func", made)


def is_static(spec: QuantizationSpec | None) -> bool:
    """Tell whether the parameters of an activation are known before it comes."""
    return spec is not None and not spec.is_dynamic and observer_of(spec) is not PerTokenObserver


def _is_read_later(node: Node) -> bool:
    """Tell whether something else reads argument 0, which an in-place operator changes."""
    return any(user is not node and node < user for user in node.args[0].users)  # type: ignore[union-attr]


def is_float(node: object) -> bool:
    """Tell whether ``node`` is a float32 tensor."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return isinstance(value, Tensor) and value.dtype == torch.float32


def _has_form(node: object, config: QuantizationConfig) -> bool:
    """Tell whether an operand is float32, or float16 where ranges are those of the data."""
    spec = config.input_activation
    if spec is None or is_static(spec) or observer_of(spec) is PerTokenObserver:
        return is_float(node)
    value = node.meta.get("val") if isinstance(node, Node) else None
    return isinstance(value, Tensor) and value.dtype in (torch.float32, torch.float16)


def _float_inputs(node: Node) -> list[Node]:
    return [n for n in node.all_input_nodes if is_float(n)]


def layer_of(node: Node) -> str:
    """Return the path of the module that ``node`` comes from, or its own name."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = stack[-1][0] if stack else ""
    return path.removeprefix("L['self'].").replace("']", "").replace("['", "") or node.name


def _is_quantized(node: Node) -> bool:
    """Tell whether the value of ``node`` is quantized where it is made, or can be: an input."""
    found = node.meta.get(KEY)
    return node.op == "placeholder" or (found is not None and found.output_qspec is not None)


def _edge(producer: Node, config: QuantizationConfig) -> QuantizationSpecBase:
    """Return how a value is quantized that ``producer`` makes."""
    found = producer.meta.get(KEY)
    if found is not None and isinstance(found.output_qspec, FixedQParamsQuantizationSpec):
        return SharedQuantizationSpec(producer)
    return config.input_activation


def _only_user(node: Node, targets: frozenset[Any]) -> Node | None:
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].target in targets else None


def _last_of(node: Node, config: QuantizationConfig) -> Iterator[Node]:
    """Yield ``node`` and what it takes in: a norm in training, a clamp."""
    yield node
    if config.is_qat and node.target in CONVOLUTIONS:
        norm = _only_user(node, NORMS)
        if norm is not None:
            yield norm
            node = norm
    clamp = _only_user(node, CLAMPS)
    if clamp is not None:
        yield clamp


def _set(
    node: Node,
    inputs: dict[Node, QuantizationSpecBase | None],
    output: QuantizationSpecBase | None,
    config: QuantizationConfig,
) -> None:
    """Quantize ``inputs`` of ``node``, and as ``output`` the result of the last it takes in."""
    *before, last = [node] if output is None else _last_of(node, config)
    for part in before:
        part.meta[KEY] = QuantizationAnnotation(_annotated=True)
    last.meta[KEY] = QuantizationAnnotation(output_qspec=output, _annotated=True)
    node.meta[KEY].input_qspec_map = inputs


def annotate_weighted(
    node: Node, row: Weighted, config: QuantizationConfig, model: GraphModule
) -> None:
    """Annotate the input, the weight and the result of a convolution or linear layer."""
    activation, weight = node.args[0], node.args[1]
    if not (_has_form(activation, config) and _has_form(weight, config) and _is_constant(weight)):
        return
    assert isinstance(activation, Node)
    assert isinstance(weight, Node)
    if not is_static(config.input_activation) and _is_depthwise(node):
        return
    spec = config.weight
    if spec is not None and spec.ch_axis is not None:
        spec = replace(spec, ch_axis=row.axis)
    if _is_observed_once(spec):
        if weight.op != "get_attr":
            return
        check_groups(node, weight, config)
    inputs: dict[Node, QuantizationSpecBase | None] = {}  # in this order for torchao's training
    if config.input_activation is not None:
        inputs[activation] = _edge(activation, config)
    _set(node, {**inputs, weight: spec}, config.output_activation, config)


def _is_depthwise(node: Node) -> bool:
    """Tell whether each of several groups of a convolution has one input channel.

    XNNPACK has no such kernel for activations that are quantized when they come.
    """
    names = [argument.name for argument in node.target._schema.arguments]  # type: ignore[union-attr]
    if "groups" not in names or "output_padding" in names:
        return False
    groups = dict(zip(names, node.args, strict=False)).get("groups", node.kwargs.get("groups", 1))
    return groups != 1 and node.args[1].meta["val"].shape[1] == 1  # type: ignore[union-attr]


def _is_observed_once(spec: Any) -> bool:
    """Tell whether the weight must be a constant as it is stored."""
    return isinstance(spec, QuantizationSpec) and issubclass(observer_of(spec), WeightObserver)


def annotate_recurrent(
    node: Node, row: Recurrent, config: QuantizationConfig, model: GraphModule
) -> None:
    """Annotate the matrices of a recurrent layer, whatever its activations are elsewhere."""
    parameters: Any = node.args[2]
    matrices = [n for n in parameters if is_float(n) and n.meta["val"].dim() == 2]
    if not matrices or not all(n.op == "get_attr" for n in matrices):
        return
    if _is_observed_once(config.weight):
        for matrix in matrices:
            check_groups(node, matrix, config)
    inputs: dict[Node, QuantizationSpecBase | None] = dict.fromkeys(matrices, config.weight)
    source = node.args[0]
    if row.is_whole and is_static(config.input_activation) and isinstance(source, Node):
        inputs = {source: _edge(source, config), **inputs}
        for result in node.users:
            spec = FROM_MINUS_ONE_TO_ONE if result.args[1] in (0, 1) else config.output_activation
            result.meta[KEY] = QuantizationAnnotation(output_qspec=spec, _annotated=True)
    node.meta[KEY] = QuantizationAnnotation(inputs, _annotated=True)


def check_groups(node: Node, weight: Node, config: QuantizationConfig) -> None:
    """Refuse a group size that does not divide the rows of a weight."""
    size = config.weight.observer_or_fake_quant_ctr.p.keywords.get("group_size")
    columns = weight.meta["val"].shape[-1]
    if size is not None and columns % size:
        raise QuantizationError(
            f"layer {layer_of(node)!r}: a row of its weight has {columns} numbers, which groups "
            f"of {size} do not divide; choose another group_size, or leave the layer in float"
        )


def _is_constant(node: object) -> bool:
    """Tell whether ``node`` depends on constants only."""
    if not isinstance(node, Node) or node.op not in ("get_attr", "call_function"):
        return False
    return node.op == "get_attr" or (
        bool(node.all_input_nodes) and all(map(_is_constant, node.all_input_nodes))
    )


def annotate_arithmetic(
    node: Node, row: Arithmetic, config: QuantizationConfig, model: GraphModule
) -> None:
    """Annotate all float inputs and the result of an operator that comes behind quantized ones."""
    inputs = _float_inputs(node)[: 1 if row.takes_one else None]
    if not is_float(node) or not any(map(_is_quantized, inputs)) or _is_norm(node):
        return
    if not row.takes_one and len(inputs) < len(node.all_input_nodes):
        return
    if row.takes_numbers and len(node.all_input_nodes) > 1:
        return
    if row.is_sum and (_is_normalized(node) or _is_masked(node)):
        return
    if any(_is_large(argument, model) for argument in node.args):
        return
    specs = {n: _edge(n, config) for n in inputs}
    if row.fixed is not None and config.output_activation.dtype == torch.int8:
        _set(node, specs, None, config)
        node.meta[KEY].output_qspec = row.fixed
    elif output := _scores(node, model, config):
        _set(node, specs, output, config)
    else:
        return
    if len(node.all_input_nodes) == 1 and is_pointwise(node.target):
        _observe_through(inputs[0], [node], config)


def _is_masked(node: Node) -> bool:
    """Tell whether a softmax alone reads ``node``, scores and a mask that is given with a call.

    It may be of any value, and before a softmax, which is in float, integers save nothing.
    """
    given = [_is_given(each) for each in node.all_input_nodes]
    return {n.target for n in node.users} == {aten.softmax.int} and len({*given}) == 2


def _is_given(node: Node) -> bool:
    """Tell whether a value comes from inputs of the model without a product."""
    pending, seen, found = [node], {node}, False
    while pending:
        each = pending.pop()
        found = found or each.op == "placeholder"
        if each.all_input_nodes and not _keeps(each.target):
            return False
        new = [n for n in each.all_input_nodes if n not in seen]
        seen.update(new)
        pending += new
    return found


def _keeps(target: object) -> bool:
    is_move = isinstance(ROWS.get(target), Moved) or target in (aten.to.dtype, aten.type_as.default)
    return is_move or is_pointwise(target)


def _scores(node: Node, model: GraphModule, config: QuantizationConfig) -> QuantizationSpec | None:
    """Return how a result is quantized: masked scores by what counts in the softmax of them.

    None where no range is made of those: in training, or where more than a softmax reads them.
    """
    spec, reads = config.output_activation, {n.target for n in node.users}
    if aten.softmax.int not in reads or not any(_hides(each, model) for each in node.args):
        return spec
    if observer_of(spec) is not RangeObserver or len(reads) > 1:
        return None
    dims = {n.args[1] for n in node.users}
    if len(dims) > 1:
        return None
    options = spec.observer_or_fake_quant_ctr.p.keywords
    observer = ScoresObserver.with_args(dim=dims.pop(), **options)
    return replace(spec, observer_or_fake_quant_ctr=observer)


def _hides(argument: object, model: GraphModule) -> bool:
    """Tell whether ``argument`` is a mask: a number, or a constant that reaches as low."""
    if isinstance(argument, (int, float)):
        return argument <= HIDDEN
    if not isinstance(argument, Node) or argument.op != "get_attr" or not is_float(argument):
        return False
    return bool((tensor_of(model, argument) <= HIDDEN).any())


def annotate_function(
    source: Node, nodes: list[Node], config: QuantizationConfig, model: GraphModule
) -> None:
    """Annotate what ``nodes`` compute of ``source``, element by element, as one operator."""
    last, row = nodes[-1], ROWS.get(nodes[-1].target, CHOICE)
    assert isinstance(row, Arithmetic)
    if not is_float(last):
        return
    if any(KEY in n.meta for n in nodes) or not is_static(config.input_activation):
        return
    if not _is_quantized(source) or any(_is_large(a, model) for n in nodes for a in n.args):
        return
    if row.is_sum and _is_normalized(last):
        return
    for node in nodes:
        reads = source in node.all_input_nodes
        inputs = {source: _edge(source, config)} if reads else {}
        node.meta[KEY] = QuantizationAnnotation(inputs, _annotated=True)
        node.meta[INNER] = node is not last
    fixed = row.fixed if config.output_activation.dtype == torch.int8 else None
    last.meta[KEY].output_qspec = fixed or config.output_activation
    _observe_through(source, nodes, config)


def _observe_through(source: Node, nodes: list[Node], config: QuantizationConfig) -> None:
    """Choose the range of ``source`` by what ``nodes`` make of it, where nothing else reads it."""
    spec, found = config.output_activation, source.meta.get(KEY)
    if observer_of(spec) is not RangeObserver or not set(source.users) <= set(nodes):
        return
    if found is not None and found.output_qspec is not spec:
        return
    options = spec.observer_or_fake_quant_ctr.p.keywords
    observer = RangeObserver.with_args(function=function_of(nodes, source), **options)
    through = replace(spec, observer_or_fake_quant_ctr=observer)
    if found is not None:
        found.output_qspec = through
    for node in nodes:
        if source in node.meta[KEY].input_qspec_map:
            node.meta[KEY].input_qspec_map[source] = through


def _is_norm(node: Node) -> bool:
    """Tell whether ``node`` is the mean of a normalization, kept for broadcasting over rows."""
    if node.target not in (aten.mean.dim, aten.sum.dim_IntList):
        return False
    if all(user.op == "output" for user in node.users):
        return False
    rank, dims = node.args[0].meta["val"].dim(), node.args[1] or ()  # type: ignore[union-attr]
    keeps = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
    return bool(keeps) and [d % rank for d in dims] == [rank - 1]  # type: ignore[union-attr]


def _is_normalized(node: Node) -> bool:
    """Tell whether a norm reads the sum ``node``, as in the residual stream of a transformer.

    The norm gives each row the same weight; one scale would leave little of those that are small.
    """
    pending, seen = list(node.users), {node}
    while pending:
        user = pending.pop()
        if user.target in FEATURE_NORMS or _is_norm(user):
            return True
        moves = isinstance(ROWS.get(user.target), Moved) or user.target is aten.pow.Tensor_Scalar
        if user not in seen and moves:
            pending += user.users
        seen.add(user)
    return False


def _is_large(argument: object, model: GraphModule) -> bool:
    """Tell whether ``argument`` is a constant that is a mask or a sentinel."""
    if isinstance(argument, (int, float)):
        return not abs(argument) <= LARGE
    if not isinstance(argument, Node) or argument.op != "get_attr" or not is_float(argument):
        return False
    value = tensor_of(model, argument)
    return not bool((value.abs() <= LARGE).all())


def annotate_moved(
    node: Node, row: Moved | Split, config: QuantizationConfig, model: GraphModule
) -> None:
    """Give inputs and result one scale, where a quantized value is moved."""
    if any(_is_large(each, model) for each in node.all_input_nodes):
        return
    inputs = _float_inputs(node)
    if not any(map(_is_quantized, inputs)):
        return
    if not _moves_only(node):
        adds = isinstance(row, Moved) and row.adds_numbers and is_float(node)
        if adds and not any(_is_large(each, model) for each in node.args):
            specs = {each: _edge(each, config) for each in inputs}
            _set(node, specs, config.output_activation, config)
    elif row.of_inputs or any(n.op != "placeholder" for n in inputs):
        _share(node, config)


def _moves_only(node: Node) -> bool:
    """Tell whether no value is added that the inputs' range may lack: zero is in each."""
    if node.target is aten.pad.default and node.args[2:3] not in [(m,) for m in PADS_WITH_OWN]:
        value = node.args[3] if len(node.args) > 3 else node.kwargs.get("value")
        return value in (None, 0)
    return is_float(node) or all(map(is_float, node.users))


def _share(node: Node, config: QuantizationConfig) -> None:
    inputs = _float_inputs(node)
    shared = SharedQuantizationSpec((inputs[0], node))
    specs: dict[Node, QuantizationSpecBase | None] = dict.fromkeys(inputs, shared)
    specs[inputs[0]] = _edge(inputs[0], config)
    results = [node] if is_float(node) else list(node.users)
    for result in results:
        result.meta[KEY] = QuantizationAnnotation(output_qspec=shared, _annotated=True)
    if node not in results:
        node.meta[KEY] = QuantizationAnnotation(_annotated=True)
    node.meta[KEY].input_qspec_map = specs


def annotate_compared(node: Node, row: Row, config: QuantizationConfig, model: GraphModule) -> None:
    """Give what is compared one scale."""
    inputs = _float_inputs(node)
    if len(inputs) < len(node.all_input_nodes) or not any(map(_is_quantized, inputs)):
        return
    if any(_is_large(argument, model) for argument in node.args):
        return
    shared = SharedQuantizationSpec((inputs[0], node))
    specs: dict[Node, QuantizationSpecBase | None] = dict.fromkeys(inputs, shared)
    specs[inputs[0]] = _edge(inputs[0], config)
    node.meta[KEY] = QuantizationAnnotation(specs, _annotated=True)


def move_forward(node: Node, row: Row, config: QuantizationConfig) -> None:
    """Quantize before a value is moved, where all that read it afterwards read it quantized."""
    if KEY in node.meta or not isinstance(row, Moved) or not _fits(row, config):
        return
    reads = [user.meta.get(KEY) for user in node.users]
    is_read_quantized = all(found and found.input_qspec_map.get(node) for found in reads)
    if reads and is_read_quantized and _float_inputs(node) and _moves_only(node):
        _share(node, config)


def annotate_table(node: Node, row: Table, config: QuantizationConfig, model: GraphModule) -> None:
    """Annotate the table of an embedding."""
    table = node.args[0]
    if not (is_float(table) and isinstance(table, Node) and table.op == "get_attr"):
        return
    if observer_of(config.weight) is not TableObserver:
        node.meta[KEY] = QuantizationAnnotation(
            output_qspec=config.output_activation, _annotated=True
        )
        return
    check_groups(node, table, config)
    check_packing(node, table, config)
    node.meta[KEY] = QuantizationAnnotation({table: config.weight}, _annotated=True)


def check_packing(node: Node, table: Node, config: QuantizationConfig) -> None:
    """Refuse rows that do not end with a byte."""
    columns, levels = table.meta["val"].shape[-1], config.weight.quant_max * 2 + 2
    number = {256: 1, 16: 2, 4: 4}[levels]
    if columns % number:
        raise QuantizationError(
            f"layer {layer_of(node)!r}: a row of its table has {columns} numbers, which bytes of "
            f"{number} numbers do not divide; choose more bits, or leave the layer in float"
        )


CONVOLUTIONS = frozenset(
    {
        aten.conv1d.default,
        aten.conv2d.default,
        aten.conv_transpose1d.default,
        aten.conv_transpose2d.input,
    }
)

ANNOTATORS: dict[type, Callable[..., None]] = {
    Weighted: annotate_weighted,
    Arithmetic: annotate_arithmetic,
    Compared: annotate_compared,
    Moved: annotate_moved,
    Recurrent: annotate_recurrent,
    Split: annotate_moved,
    Table: annotate_table,
}
