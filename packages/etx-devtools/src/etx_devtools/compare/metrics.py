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

__all__ = ["METRICS", "Distance", "Metric", "distance", "measuring"]

Array = np.ndarray[Any, Any]
METRICS = ("max_abs", "max_rel", "mse", "l1", "snr_db", "cosine", "ulp")
SPACING: dict[str, Any] = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
BFLOAT16_BITS = 7

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
    return replace(found, own={name: float(own(got, expected)) for name, own in metrics.items()})


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
    a, b = _wide(got), _wide(expected)
    with np.errstate(all="ignore"):
        error = np.asarray(np.abs(a - b))
        error[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        error[np.isnan(error)] = np.inf
        place = np.unravel_index(int(error.argmax()), error.shape)
        size = np.abs(b)
        relative = np.where(error == 0, 0.0, error / size)
        units = np.where(error == 0, 0.0, error / _spacing(b, dtype))
        power, noise = float(np.square(size).mean()), float(np.square(error).mean())
        return Distance(
            max_abs=float(error[place]),
            max_rel=float(np.nanmax(relative)),
            mse=noise,
            l1=float(error.mean()),
            snr_db=_decibels(power, noise),
            cosine=_cosine(a, b),
            ulp=float(np.nanmax(units)),
            at=tuple(int(index) for index in place),
            got=_number(a[place]),
            expected=_number(b[place]),
            nan=int((np.isnan(a) & ~np.isnan(b)).sum()),
            inf=int((np.isinf(a) & ~np.isinf(b)).sum()),
        )


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


def _cosine(a: Array, b: Array) -> float:
    lengths = math.sqrt(float(np.square(np.abs(a)).sum()) * float(np.square(np.abs(b)).sum()))
    if lengths == 0:
        return 1.0 if not a.any() and not b.any() else 0.0
    product = np.abs((a.conj() * b).sum()) if np.iscomplexobj(a) else (a * b).sum()
    return float(product / lengths)


def _plain(item: Any) -> Any:
    if isinstance(item, float) and not math.isfinite(item):
        return str(item)
    if isinstance(item, Mapping):
        return {key: _plain(value) for key, value in item.items()}
    return list(item) if isinstance(item, tuple) else item
