# SPDX-License-Identifier: BSD-3-Clause
"""When two results are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

UNITS = {
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
    torch.float32: 2.0**-23,
    torch.float64: 2.0**-52,
}
FEW = {torch.float16: 1, torch.bfloat16: 1, torch.float32: 8, torch.float64: 16}
"""Steps of a dtype by which two correct results may differ: what is computed in a wider type and
rounded once differs by one at most."""
WORSE = 4.0


def difference(
    actual: Any, expected: Any, exact: Any, same_bits: bool = False, scale: float = 0.0
) -> str | None:
    """Say how `actual` differs from `expected`; None when both are right.

    Floating results may differ by `FEW` steps, or be as near to the `exact` result as eager's are;
    not with `same_bits`, where only a NaN's bits are free. Of float64 there is no more exact
    result: there sums of numbers of size `scale` may differ by steps of that.
    """
    if not isinstance(expected, torch.Tensor):
        return scalar_difference(actual, expected)
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)} is not {list(expected.shape)}"
    if actual.is_complex():
        actual, expected = torch.view_as_real(actual), torch.view_as_real(expected.resolve_conj())
        exact = torch.view_as_real(exact) if exact is not None and exact.is_complex() else None
    if not expected.is_floating_point():
        return None if torch.equal(actual, expected) else shown(actual, expected)
    got, want = actual.double(), expected.double()
    if not torch.equal(got.isnan(), want.isnan()):
        return f"NaN: {shown(actual, expected)}"
    finite = want.isfinite() & got.isfinite()
    same = (got == want) | want.isnan()
    if not bool((same | finite).all()):
        return f"infinite: {shown(actual, expected)}"
    off = (got - want).abs()
    unit = UNITS[expected.dtype] * FEW[expected.dtype]
    small = torch.finfo(expected.dtype).smallest_normal
    if expected.dtype == torch.float64 and scale:
        small = 4 * unit * scale
    close = same if same_bits else same | (off <= unit * want.abs() + small)
    if same_bits and bool(close.all()):
        signs = (got.signbit() == want.signbit()) | want.isnan()
        return None if bool(signs.all()) else "the sign of zero differs"
    if same_bits:
        return shown(actual, expected)
    if bool(close.all()) or is_as_exact(got, want, exact, close, unit):
        return None
    return shown(actual, expected)


def scalar_difference(actual: Any, expected: Any) -> str | None:
    if isinstance(expected, float) and expected != expected:
        same = actual != actual
    else:
        same = type(actual) is type(expected) and actual == expected
    return None if same else f"{actual!r} is not {expected!r}"


def is_as_exact(
    got: torch.Tensor, want: torch.Tensor, exact: Any, close: torch.Tensor, unit: float
) -> bool:
    """Whether `got` is as near to the exact result as eager's `want` is, give or take."""
    if exact is None or exact.shape != want.shape or not exact.is_floating_point():
        return False
    truth = exact.double()
    judged = truth.isfinite() & want.isfinite()
    if bool((~close & ~judged).any()):
        return False
    allowed = WORSE * (want - truth).abs()[judged].amax() + unit * truth.abs() + unit / 8
    return bool((close | ((got - truth).abs() <= allowed)).all())


def shown(actual: torch.Tensor, expected: torch.Tensor) -> str:
    """The first few elements that differ."""
    a, b = actual.flatten(), expected.flatten()
    differ = (a != b) & ~((a != a) & (b != b))
    where = differ.nonzero().flatten()
    if a.is_floating_point():
        size = torch.nan_to_num((a.double() - b.double()).abs()[where], posinf=1e300)
        where = where[size.argsort(descending=True)]
    some: Sequence[int] = where[:3].tolist()
    pairs = ", ".join(f"{a[i].item()} for {b[i].item()}" for i in some)
    return f"{len(where)} of {a.numel()}: {pairs}"
