# SPDX-License-Identifier: BSD-3-Clause
"""Operators that torch.library registers run as they are, and fail as the runtime's errors."""

from __future__ import annotations

import gc

import etx_runtime
import pytest
import torch
from torch import nn
from torch.testing import assert_close


@pytest.fixture
def define():
    """Return a function that registers `schema` in namespace `own` with a kernel and a fake."""
    libraries = []

    def register(schema, kernel, fake):
        library = torch.library.Library("own", "FRAGMENT")
        libraries.append(library)
        library.define(schema)
        name = schema.partition("(")[0]
        library.impl(name, kernel, "CPU")
        torch.library.register_fake(f"own::{name}", fake, lib=library)
        return library

    yield register
    for library in libraries:
        library._destroy()
    gc.collect()


def calling(name, *more):
    class Calls(nn.Module):
        def forward(self, x):
            return getattr(torch.ops.own, name)(x + 1, *more)

    return Calls()


def like(x, *_):
    return torch.empty_like(x)


def test_a_functional_operator(define, compiled):
    define("twice(Tensor x, float by) -> Tensor", lambda x, by: x * by * 2, like)
    x = torch.randn(3)
    assert_close(compiled(calling("twice", 1.5), (x,))(x), (x + 1) * 3)


def test_an_operator_with_two_results(define, compiled):
    define(
        "parts(Tensor x) -> (Tensor, Tensor)",
        lambda x: (x[:1] * 1, x.sum()),
        lambda x: (x[:1] * 1, x.sum()),
    )
    x = torch.randn(3)
    first, total = compiled(calling("parts"), (x,))(x)
    assert_close((first, total), (x[:1] + 1, (x + 1).sum()))


def test_a_result_that_aliases_its_input(define, compiled):
    define("same(Tensor x) -> Tensor", lambda x: x, like)
    x = torch.randn(3)
    assert_close(compiled(calling("same"), (x,))(x), x + 1)


def test_a_result_of_another_dtype(define, compiled):
    define("wide(Tensor x) -> Tensor", lambda x: x.double(), like)
    program = compiled(calling("wide"), (torch.ones(3),))
    expected = (
        r"own::wide\.out failed at instruction 1: torch returned float64, the program takes float32"
    )
    with pytest.raises(etx_runtime.ExecutionError, match=expected):
        program(torch.ones(3))


def test_a_result_without_room(define, compiled):
    define("more(Tensor x) -> Tensor", lambda x: torch.cat([x, x]), like)
    program = compiled(calling("more"), (torch.ones(3),))
    expected = (
        r"torch's result has sizes \[6\], for which the program has no room: planned are up to 3"
    )
    with pytest.raises(etx_runtime.ExecutionError, match=expected):
        program(torch.ones(3))


def test_an_operator_that_raises(define, compiled):
    def small(x):
        if x.sum() > 10:
            raise ValueError("too large for this operator")
        return x * 2

    define("small(Tensor x) -> Tensor", small, like)
    program = compiled(calling("small"), (torch.ones(3),))
    with pytest.raises(etx_runtime.ExecutionError, match=r"too large for this operator") as raised:
        program(torch.full((3,), 9.0))
    assert raised.value.name == "own::small.out"
    assert raised.value.instruction == 1
    assert "test_custom_operators.py" in str(raised.value)
    assert_close(program(torch.ones(3)), torch.full((3,), 4.0))


def test_memory_exhausted_inside_torch(define, compiled):
    define("huge(Tensor x) -> Tensor", lambda x: torch.empty(1 << 60)[:3], like)
    program = compiled(calling("huge"), (torch.ones(3),))
    with pytest.raises(etx_runtime.ExecutionError, match=r"MemoryAllocationFailed") as raised:
        program(torch.ones(3))
    assert raised.value.code == 0x21


def test_a_schema_that_changed(define, compiled):
    library = define("moving(Tensor x) -> Tensor", lambda x: x * 2, like)
    program = compiled(calling("moving"), (torch.ones(3),))
    assert_close(program(torch.ones(3)), torch.full((3,), 4.0))
    library._destroy()
    with pytest.raises(etx_runtime.ExecutionError, match=r"torch has no operator own::moving any"):
        program(torch.ones(3))
    again = define("moving(Tensor x, int by) -> Tensor", lambda x, by: x * by, like)
    with pytest.raises(etx_runtime.ExecutionError, match=r"the operator's schema changed from "):
        program(torch.ones(3))
    fresh = etx_runtime.Model(program.program)
    with pytest.raises(etx_runtime.ExecutionError, match=r"the operator's schema changed from "):
        fresh(torch.ones(3))
    again._destroy()
    define("moving(Tensor x) -> Tensor", lambda x: x * 3, like)
    assert_close(program(torch.ones(3)), torch.full((3,), 6.0))


def test_an_operator_that_nobody_registered(define, compiled):
    library = define("gone(Tensor x) -> Tensor", lambda x: x, like)
    program = compiled(calling("gone"), (torch.ones(3),)).program
    library._destroy()
    content = program.__reduce__()[1][0]
    with pytest.raises(etx_runtime.LoadError, match=r"no kernel for 1 operator: own::gone\.out"):
        etx_runtime.load(content, kernels="aten")
