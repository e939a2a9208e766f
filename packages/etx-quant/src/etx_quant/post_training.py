# SPDX-License-Identifier: BSD-3-Clause
"""Quantization after training, in one call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import Quantizer

from etx_quant.annotate import layer_of
from etx_quant.checks import (
    Batch,
    captured,
    check_fit,
    check_groups,
    check_model,
    check_names,
    check_quantizer,
    read_batches,
)
from etx_quant.constants import tensor_of
from etx_quant.edges import quantize_edges
from etx_quant.errors import FloatEdgeError, QuantizationError
from etx_quant.layers import Edge, Layer, Report, describe
from etx_quant.mixed_precision import Goal, Sensitivity, choose, keep_units, measure
from etx_quant.modes import set_training
from etx_quant.norms import fold_norms
from etx_quant.progress import Progress, shown
from etx_quant.recipes import GROUP_SIZE, quantizer_of
from etx_quant.regions import inline_regions
from etx_quant.report import compare, is_same
from etx_quant.simulation import Simulation, observer_nodes
from etx_quant.taken import check_taken
from etx_quant.weights import fold_weights

__all__ = ["quantize", "quantize_with_report"]

MEASURED = 8
"""How many batches are measured; all of them calibrate."""

GOALS = "target_sqnr", "accuracy", "least_accuracy"
SIDES = "inputs", "outputs"
OPTIONS = "recipe", "group_size", "keep_float", "dynamic_shapes"

LARGEST = 1e30
"""Beyond it are masks, not activations: the least float32 is -3.4e38."""


def quantize(
    model: nn.Module,
    calibration: Iterable[Any],
    quantizer: Quantizer | None = None,
    *,
    recipe: str = "int8",
    target_sqnr: float | None = None,
    accuracy: Callable[[Callable[..., Any]], float] | None = None,
    least_accuracy: float | None = None,
    group_size: int | None = GROUP_SIZE,
    keep_float: Collection[str] = (),
    dynamic_shapes: Any = None,
    progress: Progress | None = None,
) -> GraphModule:
    """Return ``model`` quantized after a recipe, or as ``quantizer`` annotates it.

    ``calibration`` holds calls of the model: tuples of arguments, or dicts of keyword arguments.
    The first is also the example for ``torch.export``, to which ``dynamic_shapes`` is passed on.
    Recipes are those of ``etx_quant.recipes.RECIPES``; ``group_size`` is that of int4's groups,
    None for a scale a row, and modules named in ``keep_float`` stay as they are.

    With ``target_sqnr``, in decibels, each operator is measured and the worst stay in float until
    the outputs reach it; with ``accuracy``, until that function of the model returns at least
    ``least_accuracy``. ``progress`` is called with a step, how many are done, how many there are;
    unless given, a terminal shows it.

    The result keeps quantize and dequantize operators around each quantized one: export it and
    lower it like any module.

    Raises QuantizationError, before anything takes long, for calibration data that are missing,
    do not fit the model or are not finite, and for groups that do not divide a layer. Warns with
    QuantizationWarning where only a model that is all float reaches the goal.
    """
    job = _Job(
        model,
        quantizer,
        recipe,
        Goal(target_sqnr, accuracy, least_accuracy),
        group_size,
        keep_float,
        dynamic_shapes,
    )
    with shown(progress) as step:
        job.prepare(calibration, step)
        job.reach_goal(step)
        return job.convert()


def quantize_with_report(
    model: nn.Module,
    calibration: Iterable[Any],
    quantizer: Quantizer | None = None,
    *,
    progress: Progress | None = None,
    int8_io: bool | Literal["inputs", "outputs"] = False,
    **options: Any,
) -> tuple[GraphModule, Report]:
    """Do what ``quantize`` does with these options, and report each layer over some batches.

    With ``int8_io`` float inputs and outputs become int8, or one side of them, as
    ``quantize_edges`` does it; the report's ``edges`` say what the numbers mean.

    Raises QuantizationError also where an input or output stays float, with ``int8_io``.
    """
    goal = Goal(*(options.pop(n, None) for n in GOALS))
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        known = ", ".join((*OPTIONS, *GOALS))
        raise TypeError(f"quantize_with_report has no option {unknown[0]!r}; it has {known}")
    job = _Job(model, quantizer, goal=goal, **options)
    with shown(progress) as step:
        job.prepare(calibration, step)
        job.reach_goal(step)
        layers = job.describe(step)
        converted = job.convert()
        calls = [batch.kwargs or batch.args for batch in job.measured]
        with unchanged(model, converted):
            sqnr = compare(model, converted, calls).sqnr
        report = Report(
            recipe=job.recipe if quantizer is None else type(quantizer).__name__,
            sqnr=sqnr,
            target_sqnr=goal.sqnr,
            bytes=sum(layer.bytes for layer in layers),
            float_bytes=sum(layer.float_bytes for layer in layers),
            layers=layers,
            edges=_integer_edges(converted, int8_io) if int8_io else (),
        )
    return converted, report


def _integer_edges(converted: GraphModule, chosen: bool | str) -> tuple[Edge, ...]:
    """Let the model take and return int8, on one side if its name is given."""
    kept = {side: () for side in SIDES if chosen in SIDES and side != chosen}
    try:
        sides = quantize_edges(converted, **kept)
    except FloatEdgeError as error:
        other = next(side for side in SIDES if side != error.side)
        raise QuantizationError(
            f"int8_io: {error} of quantize_edges, without int8_io, or give int8_io={other!r}"
        ) from error
    return tuple(
        Edge(kind, index, at.scale, at.zero_point)
        for kind, found in zip(("input", "output"), sides, strict=True)
        for index, at in found.items()
    )


@dataclass
class _Job:
    """A model on its way: prepared and calibrated, measured, converted."""

    model: nn.Module
    quantizer: Quantizer | None
    recipe: str = "int8"
    goal: Goal = field(default_factory=Goal)
    group_size: int | None = GROUP_SIZE
    keep_float: Collection[str] = ()
    dynamic_shapes: Any = None
    batches: list[Batch] = field(default_factory=list)
    sensitivity: Sensitivity = field(default_factory=lambda: Sensitivity({}))
    state: dict[str, Tensor] = field(default_factory=dict)

    @property
    def measured(self) -> list[Batch]:
        """Return the batches that are measured."""
        return self.batches[:MEASURED]

    def prepare(self, calibration: Iterable[Any], step: Progress) -> None:
        """Check everything, export, insert observers and show them the data."""
        step("checking the calibration data", 0, 1)
        check_model(self.model)
        check_quantizer(self.quantizer, self.recipe)
        quantizer = self.quantizer or quantizer_of(self.recipe, self.group_size, self.keep_float)
        check_names(self.model, self.keep_float, "keep_float")
        check_names(self.model, getattr(quantizer, "names", ()), "set_module_name")
        if self.quantizer is None and self.recipe == "int4":
            check_groups(self.model, self.group_size, self.keep_float)
        self.batches = read_batches(calibration, self.model, self.dynamic_shapes is not None)
        example = self.batches[0]
        with evaluation(self.model), unchanged(self.model):
            check_fit(self.model, example)
            step("exporting", 0, 1)
            program = captured(self.model, example, self.dynamic_shapes)
        exported = program.module(check_guards=False)
        inline_regions(exported, of_gradients=True)
        own_buffers(exported)
        self.state = {name: held.detach().clone() for name, held in exported.named_buffers()}
        fold_weights(exported)
        fold_norms(exported)
        self.prepared = prepare_pt2e(exported, quantizer)
        observers = observer_nodes(self.prepared)
        check_taken(self.prepared, "" if self.quantizer else self.recipe, self.keep_float)
        check_weights(self.prepared, observers)
        for i, batch in enumerate(self.batches):
            step("calibrating", i, len(self.batches))
            with torch.no_grad():
                self.prepared(*batch.args, **batch.kwargs)
            check_ranges(observers, i)
        check_seen(observers)
        held = dict(self.prepared.named_buffers())
        written = {n: x for n, x in self.state.items() if n in held and not is_same(x, held[n])}
        self.simulation = Simulation(self.prepared, written)

    def reach_goal(self, step: Progress) -> None:
        """Choose what stays in float, where there is a goal."""
        if self.goal.is_set:
            self.sensitivity = measure(self.simulation, self.measured, step)
            choose(self.simulation, self.sensitivity, self.measured, self.goal, step)

    def describe(self, step: Progress) -> tuple[Layer, ...]:
        """Measure each layer."""
        step("measuring layers", 0, 1)
        kept = set(self.sensitivity.kept)
        return describe(self.simulation, self.measured, kept, self.sensitivity.alone)

    def convert(self) -> GraphModule:
        """Put quantize and dequantize operators in the place of observers."""
        keep_units(self.prepared, self.simulation, self.sensitivity.kept)
        self._restore(self.prepared)
        converted: GraphModule = convert_pt2e(self.prepared)
        self._restore(converted)  # folding of constants calls what writes into buffers, too
        return in_evaluation(converted)

    def _restore(self, graph: GraphModule) -> None:
        """Put the buffers back that the calls have changed."""
        with torch.no_grad():
            for name, held in graph.named_buffers():
                if name in self.state:
                    held.copy_(self.state[name])


def in_evaluation(converted: GraphModule) -> GraphModule:
    """Put a converted graph into evaluation for good: eval and train leave it there.

    The float weights that integers have replaced are dropped.
    """
    set_training(converted, False)
    converted.graph.eliminate_dead_code()
    converted.recompile()
    drop_unread(converted)

    def stay(self: GraphModule, mode: bool = True) -> GraphModule:
        return self

    converted.eval = converted.train = MethodType(stay, converted)  # type: ignore[method-assign]
    return converted


def drop_unread(model: GraphModule) -> None:
    """Delete the parameters and buffers that no node reads."""
    read = {str(node.target) for node in model.graph.nodes if node.op == "get_attr"}
    held = [*model.named_parameters(remove_duplicate=False), *model.named_buffers()]
    for name in {name for name, _ in held} - read:
        owner, _, attribute = name.rpartition(".")
        parents = {owner.rsplit(".", i)[0] for i in range(owner.count(".") + 1)} if owner else set()
        if not parents & read:
            delattr(model.get_submodule(owner), attribute)


def own_buffers(exported: GraphModule) -> None:
    """Give the graph buffers of its own: torch.export shares those of the model."""
    copies: dict[Tensor, Tensor] = {}
    for name, held in list(exported.named_buffers(remove_duplicate=False)):
        owner, _, attribute = name.rpartition(".")
        copied = copies.setdefault(held, held.detach().clone())
        setattr(exported.get_submodule(owner), attribute, copied)


@contextmanager
def unchanged(*models: nn.Module) -> Iterator[None]:
    """Put back what calls write into buffers, such as the state of a stream."""
    held = [(buffer, buffer.detach().clone()) for model in models for buffer in model.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in held:
                if not is_same(buffer, value):
                    buffer.copy_(value)


@contextmanager
def evaluation(model: nn.Module) -> Iterator[None]:
    """Put a module that is in training into evaluation for a while."""
    training, switched = [module for module in model.modules() if module.training], False
    if model.training:
        try:
            model.eval()
        except NotImplementedError:  # torch.export gives its modules an eval() that raises it
            switched = set_training(model, False)
    try:
        yield
    finally:
        if switched:
            set_training(model, True)
        for module in training:
            module.training = True


def check_weights(prepared: GraphModule, observers: Collection[Node]) -> None:
    """Refuse weights that no integers stand for, before anything is calibrated."""
    for node in observers:
        source = node.args[0]
        assert isinstance(source, Node)
        if source.op != "get_attr":
            continue
        wrong = tensor_of(prepared, source).isfinite().logical_not()
        if bool(wrong.any()):
            layer = layer_of(next(iter(node.users), node))
            raise QuantizationError(
                f"layer {layer!r}: {int(wrong.sum())} of {wrong.numel()} values of its weight are "
                "NaN or infinite, for which no integers stand; correct them, or leave the layer in "
                f"float with keep_float=[{layer!r}]"
            )


def check_ranges(observers: dict[Node, Any], number: int) -> None:
    """Refuse values without a range, which a mask leaves or an overflow."""
    for node, observer in observers.items():
        if is_unseen(observer):
            continue
        for bound in (getattr(observer, "min_val", None), getattr(observer, "max_val", None)):
            if bound is not None and bound.numel() and not bool(bound.abs().max() <= LARGEST):
                source = node.args[0]
                assert isinstance(source, Node)
                raise QuantizationError(
                    f"calibration, batch {number}: what layer {layer_of(source)!r} returns reaches "
                    f"{float(bound.flatten()[0]):g}, of which no range can be made; leave the "
                    "layer that reads it in float with keep_float"
                )


def check_seen(observers: dict[Node, Any]) -> None:
    """Refuse values that have no elements in any call."""
    for node, observer in observers.items():
        if is_unseen(observer):
            source = node.args[0]
            assert isinstance(source, Node)
            raise QuantizationError(
                f"calibration: what layer {layer_of(source)!r} returns has no elements in any "
                "batch, so that no range can be made; give a batch in which it has some, or leave "
                "the layer that reads it in float with keep_float"
            )


def is_unseen(observer: Any) -> bool:
    """Tell whether an observer still has the empty range that it begins with."""
    low, high = getattr(observer, "min_val", None), getattr(observer, "max_val", None)
    if low is None or high is None:
        return False
    return bool((low > high).any())
