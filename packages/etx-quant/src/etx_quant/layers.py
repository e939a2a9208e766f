# SPDX-License-Identifier: BSD-3-Clause
"""A report of a quantized model, layer by layer."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor
from torch.fx import Node

from etx_quant.checks import Batch
from etx_quant.observers import TableObserver
from etx_quant.picture import Bar, draw
from etx_quant.report import decibels, errors
from etx_quant.simulation import Simulation, Unit

__all__ = ["Edge", "Layer", "Report", "describe"]

Range = tuple[float, float]


@dataclass(frozen=True)
class Layer:
    """What quantization does to one operator.

    ``sqnr``: of its result in the quantized model to that in float, in decibels, errors of what is
    before it included; where one function alone reads the result, of what that makes of it.
    ``alone``: of the model's outputs where it is the only one that is quantized, None if that was
    not measured. ``seen``: the range of its result; ``held``: the range that its integers hold,
    None where the result stays float; ``saturated``: the share of values outside of it, less those
    that such a function makes nothing else of. ``bytes``: of its weight as it is; ``float_bytes``:
    as float32.
    """

    name: str
    operator: str
    is_float: bool
    bits: int | None
    sqnr: float
    alone: float | None
    seen: Range
    held: Range | None
    saturated: float
    bytes: int
    float_bytes: int


@dataclass(frozen=True)
class Edge:
    """What the int8 numbers of an input or a result mean: ``(number - zero_point) * scale``."""

    kind: str
    index: int
    scale: float
    zero_point: int


@dataclass(frozen=True)
class Report:
    """A quantized model beside its float original, over the calibration data that was measured.

    ``edges`` are the inputs and outputs that are int8.
    """

    recipe: str
    sqnr: float
    target_sqnr: float | None
    bytes: int
    float_bytes: int
    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...] = ()

    @property
    def kept(self) -> tuple[str, ...]:
        """Return the names of the layers that stayed in float."""
        return tuple(layer.name for layer in self.layers if layer.is_float)

    def document(self) -> dict[str, Any]:
        """Return the report as numbers and texts, infinite ones as null."""
        return _finite(asdict(self))  # type: ignore[no-any-return]

    def json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(self.document(), indent=1)

    def svg(self) -> str:
        """Return a picture: a bar of decibels for each layer."""
        bars = [Bar(x.name, x.operator, x.sqnr, x.saturated, x.is_float) for x in self.layers]
        return draw(self.summary().split("\n")[0], bars, self.target_sqnr)

    def summary(self) -> str:
        """Return the whole model in a line."""
        kept = f", {len(self.kept)} of {len(self.layers)} layers in float" if self.kept else ""
        edges = "".join(
            f"\n{e.kind} {e.index}: int8, zero point {e.zero_point}, scale {e.scale:.9g}"
            for e in self.edges
        )
        return (
            f"{self.recipe}: SQNR {_decibels(self.sqnr)} dB, weights {self.bytes:,} bytes of "
            f"{self.float_bytes:,}{kept}{edges}"
        )

    def rows(self) -> list[tuple[str, ...]]:
        """Return the cells of a table: a head, then a row a layer."""
        head = ("layer", "operator", "as", "SQNR", "alone", "range", "held", "saturated", "+float")
        return [head, *map(_row, self.layers)]

    def rich(self) -> Any:
        """Return the table for a terminal; needs rich, which ``etx-quant[cli]`` brings."""
        from rich.table import Table

        head, *rows = self.rows()
        table = Table(title=self.summary(), title_justify="left", box=None)
        for i, name in enumerate(head):
            table.add_column(name, justify="left" if i < 3 else "right", no_wrap=i == 0)
        worst = min((layer.sqnr for layer in self.layers), default=0.0)
        for layer, cells in zip(self.layers, rows, strict=True):
            style = "dim" if layer.is_float else "yellow" if layer.sqnr == worst else ""
            table.add_row(*cells, style=style)
        return table

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ("  ".join(map(_pad, row, widths, range(9))).rstrip() for row in rows)
        return "\n".join([*lines, self.summary()])


def _row(layer: Layer) -> tuple[str, ...]:
    return (
        layer.name,
        layer.operator,
        "float" if layer.is_float else f"int{layer.bits}" if layer.bits else "int8",
        _decibels(layer.sqnr),
        "" if layer.alone is None else _decibels(layer.alone),
        _range(layer.seen),
        "" if layer.held is None else _range(layer.held),
        f"{layer.saturated:.2%}" if layer.saturated else "",
        f"{layer.float_bytes - layer.bytes:,}" if layer.float_bytes > layer.bytes else "",
    )


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < 3 else cell.rjust(width)


def _decibels(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else "exact" if value > 0 else "none"


def _range(found: Range) -> str:
    return f"{found[0]:.3g} … {found[1]:.3g}" if found[0] <= found[1] else "no values"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass
class _Sums:
    signal: float = 0.0
    noise: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    outside: int = 0
    count: int = 0


def describe(
    simulation: Simulation,
    batches: Sequence[Batch],
    kept: Collection[Unit],
    alone: dict[Unit, float],
) -> tuple[Layer, ...]:
    """Run the batches in float and quantized, and compare the results of each unit."""
    units = simulation.units
    active = simulation.active([unit for unit in units if unit not in kept])
    holders = {unit: _holder(simulation, unit, active) for unit in units}
    sums = {unit: _Sums() for unit in units}
    reference, quantized = simulation.stream(()), simulation.stream(active)
    for batch in batches:
        expected: dict[Node, Tensor] = {}
        actual: dict[Node, Tensor] = {}
        reference.run(batch, expected)
        quantized.run(batch, actual)
        for unit, found in sums.items():
            _add(found, expected[unit.last], actual[unit.last], holders[unit])
    return tuple(
        _layer(simulation, unit, sums[unit], _held(holders[unit]), unit in kept, alone.get(unit))
        for unit in units
    )


def _add(sums: _Sums, expected: Tensor, actual: Tensor, holder: Any) -> None:
    if not expected.numel():
        return
    x, y, held = expected.double(), actual.double(), _held(holder)
    sums.low, sums.high = min(sums.low, float(x.min())), max(sums.high, float(x.max()))
    sums.count += x.numel()
    function = getattr(holder, "function", None) or (lambda value: value)
    if held is not None:
        lost = (function(x) - function(x.clamp(*held))).abs()
        sums.outside += int((lost > (held[1] - held[0]) / 510).sum())
    signal, noise, _ = errors(function(x), function(y))
    sums.signal, sums.noise = sums.signal + signal, sums.noise + noise


def _holder(simulation: Simulation, unit: Unit, active: Collection[Node]) -> Any:
    """Return the observer that quantizes the result of ``unit``, if one does."""
    found = [user for user in unit.last.users if user in active]
    observers = [simulation.observers[node] for node in found]
    return next((o for o in observers if not o.is_dynamic and hasattr(o, "eps")), None)


def _held(observer: Any) -> Range | None:
    if observer is None:
        return None
    scale, zero = (float(x) for x in observer.calculate_qparams())
    return (observer.quant_min - zero) * scale, (observer.quant_max - zero) * scale


def _layer(
    simulation: Simulation,
    unit: Unit,
    sums: _Sums,
    held: Range | None,
    is_float: bool,
    alone: float | None,
) -> Layer:
    weights = list(_weights(simulation, unit))
    bits = max((_bits(observer) for observer, _ in weights), default=8)
    values = sum(weight.numel() for _, weight in weights)
    packed = sum(_packed(observer, weight) for observer, weight in weights)
    return Layer(
        name=unit.name,
        operator=unit.operator,
        is_float=is_float,
        bits=None if is_float else bits,
        sqnr=decibels(sums.signal, sums.noise),
        alone=alone,
        seen=(sums.low, sums.high),
        held=held,
        saturated=sums.outside / sums.count if sums.count else 0.0,
        bytes=4 * values if is_float else packed,
        float_bytes=4 * values,
    )


def _bits(observer: Any) -> int:
    return math.ceil(math.log2(observer.quant_max - observer.quant_min + 1))


def _packed(observer: Any, weight: Tensor) -> int:
    """Return the bytes of a quantized weight and its scales."""
    scales: int = observer.calculate_qparams()[0].numel()
    return (weight.numel() * _bits(observer) + 7) // 8 + 4 * scales


def _weights(simulation: Simulation, unit: Unit) -> Iterator[tuple[Any, Tensor]]:
    """Yield the observers and the values of the unit's weights, of which most have one."""
    for node in unit.node.all_input_nodes:
        source = node.args[0] if node in simulation.observers else None
        if isinstance(source, Node) and source.op == "get_attr":
            value: Any = simulation.model
            for part in str(source.target).split("."):
                value = getattr(value, part)
            observer = simulation.observers[node]
            if isinstance(observer, TableObserver) or value.dim() > 1:
                observer(value.detach())
                yield observer, value
