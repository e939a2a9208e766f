# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of the runtime as tensors: what code written for torch expects of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import etx_runtime
import numpy as np
import pytest
import torch
from etx_exir import to_edge

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8)


class Call(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def program(function: Callable[..., Any], *inputs: torch.Tensor) -> bytes:
    exported = torch.export.export(Call(function), inputs)
    return bytes(to_edge(exported).to_executorch().buffer)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_of_every_dtype(dtype: torch.dtype) -> None:
    x = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=dtype)
    data = program(lambda x: {"all": x + x, "one": [x.sum()]}, x)
    found = etx_runtime.load(data, outputs="torch")(x)
    assert found["all"].dtype == dtype
    assert torch.equal(found["all"], x + x)
    assert float(found["one"][0]) == 21
    flat = etx_runtime.load(data, outputs="torch").run_method("forward", [x])
    assert torch.equal(flat[0], x + x)
    plain = etx_runtime.load(data, outputs="numpy")(x)["all"]
    assert isinstance(plain, np.ndarray)
    assert plain.astype(np.float64).tolist() == (x + x).tolist()


def test_bfloat16_without_a_choice() -> None:
    x = torch.tensor([[1.5, -2.0]], dtype=torch.bfloat16)
    found = etx_runtime.load(program(lambda x: x + x, x))(x)
    assert repr(found) == "array([[ 3., -4.]], dtype=bfloat16)"
    assert torch.equal(torch.from_dlpack(found), x + x)
    turned = etx_runtime.load(program(lambda x: (x + x).to(torch.bfloat16), x))(x)
    assert np.asarray(turned, np.float32).tolist() == [[3.0, -4.0]]


def test_one_element() -> None:
    data = program(lambda x: (x.sum(1, keepdim=True), x.sum()), torch.ones(1, 3))
    x = np.ones((1, 3), np.float32)
    one, none = etx_runtime.load(data)(x)
    assert (one.item(), float(none)) == (3.0, 3.0)
    one, none = etx_runtime.load(data, outputs="torch")(x)
    assert (float(one), int(one), one.item(), bool(none)) == (3.0, 3, 3.0, True)


def test_a_changed_input_stays_as_it_was() -> None:
    data = program(lambda x: x.add_(1) * 2, torch.ones(3))
    for given in (torch.ones(3), np.ones(3, np.float32)):
        assert etx_runtime.load(data)(given).tolist() == [4.0, 4.0, 4.0]
        assert given.tolist() == [1.0, 1.0, 1.0]
