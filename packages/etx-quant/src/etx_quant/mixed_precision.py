# SPDX-License-Identifier: BSD-3-Clause
"""Which operators stay in float: each is measured by itself, then the worst are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.fx import GraphModule

from etx_quant.annotate import KEY
from etx_quant.checks import Batch
from etx_quant.errors import QuantizationError
from etx_quant.progress import Progress
from etx_quant.report import decibels
from etx_quant.simulation import Simulation, Unit

__all__ = ["Goal", "Sensitivity", "choose", "keep_units", "measure"]


@dataclass(frozen=True)
class Goal:
    """What the quantized model is to reach: an SQNR in decibels, or an accuracy of the user's."""

    sqnr: float | None = None
    accuracy: Callable[[Callable[..., Any]], float] | None = None
    least_accuracy: float | None = None

    def __post_init__(self) -> None:
        if (self.accuracy is None) != (self.least_accuracy is None):
            raise QuantizationError("accuracy and least_accuracy go together; give both")
        if self.accuracy is not None and self.sqnr is not None:
            raise QuantizationError("give target_sqnr, or accuracy with least_accuracy, not both")

    @property
    def is_set(self) -> bool:
        """Tell whether there is something to reach."""
        return self.sqnr is not None or self.accuracy is not None


@dataclass
class Sensitivity:
    """The SQNR of the model's outputs where only one unit is quantized, the worst unit first."""

    alone: dict[Unit, float]
    kept: list[Unit] = field(default_factory=list)

    @property
    def order(self) -> list[Unit]:
        """Return the units, those that lose most first."""
        return sorted(self.alone, key=lambda unit: self.alone[unit])


def measure(simulation: Simulation, batches: Sequence[Batch], progress: Progress) -> Sensitivity:
    """Quantize each unit by itself and compare the outputs with float."""
    references = [simulation.run(batch, ()) for batch in batches]
    alone = {}
    for i, unit in enumerate(simulation.units):
        progress(f"measuring {unit.name}", i, len(simulation.units))
        alone[unit] = _sqnr(simulation, batches, references, [unit])
    return Sensitivity(alone)


def choose(
    simulation: Simulation,
    sensitivity: Sensitivity,
    batches: Sequence[Batch],
    goal: Goal,
    progress: Progress,
) -> None:
    """Keep as few of the worst units in float as reach the goal, by bisection of their number."""
    references = [simulation.run(batch, ()) for batch in batches]
    order = sensitivity.order
    steps = max(1, len(order)).bit_length() + 1
    low, high, done = 0, len(order), 0

    def reached(number: int) -> bool:
        nonlocal done
        progress(f"keeping {number} in float", min(done, steps - 1), steps)
        done += 1
        quantized = order[number:]
        if goal.accuracy is None:
            assert goal.sqnr is not None
            return _sqnr(simulation, batches, references, quantized) >= goal.sqnr
        active = simulation.active(quantized)
        found = goal.accuracy(lambda *a, **k: simulation.call(Batch(a, k), active))
        assert goal.least_accuracy is not None
        return float(found) >= goal.least_accuracy

    if not reached(0):
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if reached(middle) else (middle, high)
        if high == len(order) and not reached(high):
            raise QuantizationError(_unreachable(goal))
        sensitivity.kept = order[:high]


def _unreachable(goal: Goal) -> str:
    if goal.accuracy is None:
        return f"target_sqnr={goal.sqnr} is not reached with everything in float"
    return (
        f"least_accuracy={goal.least_accuracy} is not reached with everything in float: is it "
        "above the accuracy of the model as it was given?"
    )


def _sqnr(
    simulation: Simulation,
    batches: Sequence[Batch],
    references: Sequence[Sequence[Any]],
    quantized: Sequence[Unit],
) -> float:
    active = simulation.active(quantized)
    signal = noise = 0.0
    for batch, expected in zip(batches, references, strict=True):
        for x, y in zip(expected, simulation.run(batch, active), strict=True):
            if isinstance(x, Tensor) and x.is_floating_point():
                signal += float(x.double().square().sum())
                noise += float((x.double() - y.double()).square().sum())
    return decibels(signal, noise)


def keep_units(prepared: GraphModule, simulation: Simulation, units: Sequence[Unit]) -> None:
    """Take out of a prepared graph the observers that only these units need."""
    if not units:
        return
    stay = simulation.active([unit for unit in simulation.units if unit not in units])
    for unit in units:
        for node in (unit.node, unit.last):
            node.meta.pop(KEY, None)
    for node in simulation.observers:
        if node not in stay:
            (source,) = node.args
            node.replace_all_uses_with(source)  # type: ignore[arg-type]
            prepared.graph.erase_node(node)
    prepared.delete_all_unused_submodules()
    prepared.recompile()
