# SPDX-License-Identifier: BSD-3-Clause
"""What a comparison found, as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from etx_devtools.compare.checks import Check, Comparison
from etx_devtools.compare.metrics import Distance

__all__ = ["Report"]

SHOWN = 10
STRIPPED = (
    "the file does not say which values its instructions compute (no `values` in etx/debug: it was "
    "stripped, or another compiler wrote it); each operator is compared with torch's, and the "
    "outputs with the model's"
)


@dataclass
class Report:
    """The comparisons of a file with a model: one for each set of inputs, in their order.

    `where` says what ran the program, if not this machine's runtime; `random` that no inputs but
    random ones were compared, `again` that the model was compiled again to look into delegates:
    what is wrong with the file itself is not seen then. `other` is the program whose values were
    compared, in place of a model's; `searched` the Bisection that led to this program.
    """

    file: str
    model: str
    calls: list[Comparison] = field(default_factory=list)
    random: bool = False
    stripped: bool = False
    again: bool = False
    where: str = ""
    written: list[str] = field(default_factory=list)
    other: str = ""
    searched: Any = None
    left_out: Sequence[str] = ()
    """Methods of the file that were not compared."""

    @property
    def first(self) -> tuple[int, Check] | None:
        """The first instruction that makes an error, of all calls, and the call's number."""
        found = [(n, c.first) for n, c in enumerate(self.calls) if c.first is not None]
        methods = self._methods

        def order(item: tuple[int, Check]) -> tuple[int, int]:
            return methods.index(self.calls[item[0]].method), item[1].instruction

        return min(found, key=order, default=None)

    @property
    def _methods(self) -> list[str]:
        return list(dict.fromkeys(call.method for call in self.calls))

    @property
    def largest(self) -> float:
        """The largest absolute error of an output; infinity where a shape differs."""
        outputs = [output for call in self.calls for output in call.outputs if output is not None]
        return max((output.max_abs for output in outputs), default=0.0)

    def document(self) -> dict[str, Any]:
        """Return the report as JSON's types."""
        first = self.first
        return {
            "file": self.file,
            "model": self.model,
            "random_inputs_only": self.random,
            "stripped": self.stripped,
            "compiled_again": self.again,
            "ran": self.where or "here",
            "against": self.other or None,
            "written": self.written,
            "bisection": None if self.searched is None else self.searched.document(),
            "methods_left_out": list(self.left_out),
            "first": None if first is None else {"call": first[0], **_row(first[1])},
            "calls": [
                {
                    "method": call.method,
                    "outputs": [None if o is None else o.document() for o in call.outputs],
                    "state": {name: far.document() for name, far in call.state.items()},
                    "not_run": call.not_run,
                    "layers": [
                        {k: _short(v) if isinstance(v, float) else v for k, v in vars(x).items()}
                        for x in call.layers
                    ],
                    "checks": [_row(check) for check in call.checks],
                }
                for call in self.calls
            ],
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as text, the first error first."""
        first = self.first
        yield self._headline(first)
        if first is not None:
            yield ""
            yield from _details(first[1], self.other or "eager")
        yield ""
        several = len(self.calls) > len(self._methods)
        for number, call in enumerate(self.calls):
            yield from _summary(call, f"call {number}: " if several else "")
        if self.stripped:
            yield f"note: {STRIPPED}"
        if self.where:
            yield f"note: the values are those of {self.where}"
        if self.again:
            yield (
                "note: the model was compiled again, with delegates that return all they compute; "
                "compare without --inside to see the file as it is"
            )
        if self.searched is not None:
            yield from self.searched.lines()
        if self.written:
            yield "written: {}, its inputs {}, the right result {}".format(*self.written)
        if self.left_out:
            yield f"note: not compared: {', '.join(self.left_out)}; --method names another method"
        if self.random:
            yield (
                "note: only random inputs were compared, which real ones may contradict; give some "
                "with --inputs"
            )

    def _headline(self, first: tuple[int, Check] | None) -> str:
        if first is None:
            count = sum(check.made is not None for call in self.calls for check in call.checks)
            against = f" with those of {self.other}" if self.other else ""
            return (
                f"no instruction of {self.file} makes an error: {count} results compared{against}"
            )
        number, check = first
        parts = [f"method {self.calls[number].method}"] if len(self._methods) > 1 else []
        parts += [f"call {number}"] if len(self.calls) > len(self._methods) else []
        where = f" ({', '.join(parts)})" if parts else ""
        return (
            f"instruction {check.instruction} is the first that makes an error{where}: "
            f"{check.operator}" + (f", compared with {self.other}" if self.other else "")
        )


def _row(check: Check) -> dict[str, Any]:
    row = {key: item for key, item in vars(check).items() if item not in ("", None, ())}
    row["shape"] = list(check.shape)
    for key in ("made", "arrived"):
        far: Distance | None = getattr(check, key)
        if far is not None:
            row[key] = far.document()
    return {**row, "wrong": check.wrong}


def _details(check: Check, other: str) -> Iterator[str]:
    if check.module or check.source:
        yield f"  module       {check.module or '(the model itself)'}"
        yield f"  source       {check.source}"
    result = f"{check.dtype}{list(check.shape)}"
    yield f"  result       {result}" + (f", the model's {check.value}" if check.value else "")
    if check.made is not None:
        yield f"  made here    {_metrics(check.made)}; allowed {check.allowed:.3g}"
        yield f"               {_worst(check.made)}"
    if check.arrived is not None and check.arrived is not check.made:
        yield f"  from {other:7} {_metrics(check.arrived)}"
    if check.cause:
        yield f"  cause        {check.cause}"
    if check.suspects:
        shown = ", ".join(map(str, check.suspects[:SHOWN]))
        yield f"  or earlier   parts of the same operator: instructions {shown}"


def _summary(call: Comparison, start: str) -> Iterator[str]:
    by = {"value": 0, "operator": 0, "program": 0}
    reasons: dict[str, int] = {}
    for check in call.checks:
        if check.made is not None:
            by[check.by] += 1
        else:
            reasons[check.reason] = reasons.get(check.reason, 0) + 1
    wrong = sum(check.wrong for check in call.checks)
    compared = (
        f"{by['value']} compared with the model's values, {by['operator']} with torch's operator"
    )
    if by["program"]:
        compared = f"{by['program']} compared with the other program's"
    yield f"{start}{call.method}: {len(call.checks)} results; {compared}, {wrong} wrong"
    for reason, count in reasons.items():
        yield f"  {count} not compared: {reason}"
    if call.not_run:
        yield f"  {call.not_run} instructions did not run: they lie in branches that were not taken"
    for check in [c for c in call.checks if c.wrong][1:SHOWN]:
        far = check.made
        assert far is not None
        place = " ".join(filter(None, (check.module, check.source)))
        yield f"  also wrong: {check.instruction} {check.operator} {place}: {_metrics(far)}"
    if wrong > SHOWN:
        yield f"  and {wrong - SHOWN} more"
    for index, output in enumerate(call.outputs):
        if output is not None:
            yield f"  output {index}: {_metrics(output)}"
    if call.layers:
        yield "  signal to noise in dB: by design (quantized against float), device against float,"
        yield "  and the runtime's own (device against quantized):"
    for layer in call.layers:
        place = f"{layer.module or '(the model itself)'} {layer.float_value}"
        shown = (f"{_short(n):>7}" for n in (layer.design, layer.device, layer.runtime))
        yield f"  {layer.instruction:5} {' '.join(shown)}  {place}"
    for name, far in call.state.items():
        yield f"  buffer {name}: {_metrics(far)}"


def _metrics(far: Distance) -> str:
    if far.problem:
        return far.problem
    text = (
        f"max abs {far.max_abs:.3g}, max rel {far.max_rel:.3g}, MSE {far.mse:.3g}, "
        f"SNR {_decibels(far.snr_db)}, cosine {far.cosine:.6g}, {far.ulp:.3g} ULP"
    )
    text += "".join(f", {name} {value:.6g}" for name, value in far.own.items())
    if far.nan or far.inf:
        text += f", {far.nan} NaN and {far.inf} Inf that eager has not"
    return text


def _decibels(value: float) -> str:
    return f"{value:.1f} dB" if math.isfinite(value) else str(value)


def _short(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else str(value)


def _worst(far: Distance) -> str:
    place: Sequence[int] = list(far.at)
    return f"worst at {place}: {far.got:.7g}, expected {far.expected:.7g}"
