# SPDX-License-Identifier: BSD-3-Clause
"""How far one array is from another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from etx_schema import EtxError

__all__ = ["METRICS", "Distance", "Metric", "distance", "measuring"]

Array = np.ndarray[Any, Any]
METRICS = ("max_abs", "max_rel", "mse", "l1", "snr_db", "cosine", "ulp")
SPACING: dict[str, Any] = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
BFLOAT16_BITS = 7
BLOCK = 1 << 15

Metric = Callable[[Array, Array], float]
"""Called with what was got and what was expected, of one shape."""

_OWN: ContextVar[Mapping[str, Metric]] = ContextVar("own")


@contextmanager
def measuring(metrics: Mapping[str, Metric] | None) -> Iterator[None]:
    """Give distances that are measured within these metrics, too; None leaves it as it is."""
    token = _OWN.set(_OWN.get({}) if metrics is None else metrics)
    try:
        yield
    finally:
        _OWN.reset(token)


@dataclass(frozen=True)
class Distance:
    """Metrics over the elements that are finite in both; the rest counts as infinitely far.

    `max_rel` is relative to the expected element, `ulp` in units of the expected element's last
    place, `snr_db` is the power of what is expected over that of the error, infinite where they
    are equal. `at` is the element that is farthest; `got` and `expected` are its values. `nan` and
    `inf` count elements that are so in the first array and not in the second.
    """

    max_abs: float
    max_rel: float
    mse: float
    l1: float
    snr_db: float
    cosine: float
    ulp: float
    at: tuple[int, ...]
    got: float
    expected: float
    nan: int = 0
    inf: int = 0
    problem: str = ""
    own: Mapping[str, float] = field(default_factory=dict)
    """By metrics of the caller."""

    def document(self) -> dict[str, Any]:
        """Return what JSON can hold: infinities and NaN are texts."""
        return {key: _plain(item) for key, item in vars(self).items() if item not in ("", None, {})}


def distance(got: Array, expected: Array, dtype: str = "float32") -> Distance:
    """Compare arrays of numbers; of other shapes than each other, everything is far."""
    found, metrics = _distance(got, expected, dtype), _OWN.get({})
    if found.problem or not metrics:
        return found
    return replace(found, own={name: _own(name, of, got, expected) for name, of in metrics.items()})


def _own(name: str, metric: Metric, got: Any, expected: Any) -> float:
    """Return what a function of the user's returns. Errors: EtxError with its name."""
    try:
        return float(metric(got, expected))
    except Exception as error:
        raise EtxError(f"the metric {name}: {type(error).__name__}: {error}") from error


def _distance(got: Array, expected: Array, dtype: str) -> Distance:
    if got.shape != expected.shape:
        problem = f"has shape {list(got.shape)}, expected {list(expected.shape)}"
        inf = math.inf
        return Distance(inf, inf, inf, inf, -inf, 0.0, inf, (), 0.0, 0.0, problem=problem)
    if not got.size:
        return Distance(0.0, 0.0, 0.0, 0.0, math.inf, 1.0, 0.0, (), 0.0, 0.0)
    if np.array_equal(got, expected):
        first = _number(expected.reshape(-1)[0])
        return Distance(0.0, 0.0, 0.0, 0.0, math.inf, 1.0, 0.0, (0,) * got.ndim, first, first)
    flat, right = got.reshape(-1), expected.reshape(-1)
    sums = _Sums(dtype)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, BLOCK):
            sums.add(start, *(_wide(one[start : start + BLOCK]) for one in (flat, right)))
        power, noise = sums.power / flat.size, sums.noise / flat.size
        return Distance(
            max_abs=sums.max_abs,
            max_rel=sums.max_rel,
            mse=noise,
            l1=sums.total / flat.size,
            snr_db=_decibels(power, noise),
            cosine=_cosine(sums.got_power, sums.power, sums.product),
            ulp=sums.ulp,
            at=tuple(int(index) for index in np.unravel_index(sums.at, got.shape)),
            got=_number(_wide(flat[sums.at])),
            expected=_number(_wide(right[sums.at])),
            nan=sums.nan,
            inf=sums.inf,
        )


@dataclass
class _Sums:
    """What is known of the elements so far, block by block: one fits a processor's cache."""

    dtype: str
    max_abs: float = -1.0
    at: int = 0
    max_rel: float = math.nan
    ulp: float = math.nan
    total: float = 0.0
    noise: float = 0.0
    power: float = 0.0
    got_power: float = 0.0
    product: Any = 0.0
    nan: int = 0
    inf: int = 0

    def add(self, start: int, a: Array, b: Array) -> None:
        """Add the elements from `start` of what was got and expected, as wide numbers."""
        error, size = np.abs(a - b), np.abs(b)
        error[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        error[np.isnan(error)] = np.inf
        place = int(error.argmax())
        if error[place] > self.max_abs:
            self.max_abs, self.at = float(error[place]), start + place
        same = error == 0
        relative = np.where(same, 0.0, error / size)
        units = np.where(same, 0.0, error / _spacing(b, self.dtype))
        self.max_rel = float(np.fmax(self.max_rel, np.fmax.reduce(relative)))
        self.ulp = float(np.fmax(self.ulp, np.fmax.reduce(units)))
        self.total += float(error.sum())
        self.noise += float(np.square(error).sum())
        self.power += float(np.square(size).sum())
        self.got_power += float(np.square(np.abs(a)).sum())
        self.product += (a.conj() * b).sum()
        self.nan += int((np.isnan(a) & ~np.isnan(b)).sum())
        self.inf += int((np.isinf(a) & ~np.isinf(b)).sum())


def _wide(array: Array) -> Array:
    complex_ = np.iscomplexobj(array)
    return array.astype(np.complex128 if complex_ else np.float64)


def _number(value: Any) -> float:
    return float(abs(value)) if np.iscomplexobj(value) else float(value)


def _spacing(values: Array, dtype: str) -> Array:
    """Return the distance from each value to the next one of `dtype`; 1 for integers."""
    size = np.abs(values)
    if dtype == "bfloat16":
        exponent = np.floor(np.log2(np.maximum(size, 2.0**-126)))
        return np.asarray(2.0 ** (exponent - BFLOAT16_BITS))
    if dtype.startswith("complex"):
        dtype = "float64" if dtype == "complex128" else "float32"
    kind = SPACING.get(dtype)
    if kind is None:
        return np.ones_like(size)
    largest = float(np.finfo(kind).max)
    return np.asarray(np.spacing(np.minimum(size, largest).astype(kind)), np.float64)


def _decibels(power: float, noise: float) -> float:
    if noise == 0:
        return math.inf
    if power == 0 or not math.isfinite(noise):
        return -math.inf
    return 10 * math.log10(power / noise)


def _cosine(one: float, other: float, product: Any) -> float:
    """Return the cosine of two arrays from their powers and their product."""
    lengths = math.sqrt(one * other)
    if lengths == 0:
        return 1.0 if one == other else 0.0
    return float((np.abs(product) if np.iscomplexobj(product) else product) / lengths)


def _plain(item: Any) -> Any:
    if isinstance(item, float) and not math.isfinite(item):
        return str(item)
    if isinstance(item, Mapping):
        return {key: _plain(value) for key, value in item.items()}
    return list(item) if isinstance(item, tuple) else item
