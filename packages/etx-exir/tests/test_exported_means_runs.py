# SPDX-License-Identifier: BSD-3-Clause
"""What the compiler writes, the runtime loads and executes, and `etx check` agrees.

Over PyTorch's own samples, drawn by ETX_SEED; `nox -s exported` draws ETX_SAMPLES of them.
"""

from __future__ import annotations

import os
import random
import warnings
from functools import cache
from itertools import islice

import etx_runtime
import pytest
import torch
import torch.nn.functional as F
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.target import UnsupportedError, load_target
from etx_schema import EtxError, read_pte
from on_device import on_device
from torch import nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

SAMPLES = int(os.environ.get("ETX_SAMPLES", "24"))
SEED = int(os.environ.get("ETX_SEED", "0"))
DTYPES = (torch.float32, torch.int64, torch.bool, torch.float16, torch.complex64, torch.uint8)
CONSIDERED = 20
X = torch.arange(32.0).reshape(2, 16) - 9


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def lowered(function, inputs, target="etx"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(Calls(function), inputs)
        return to_edge(program).to_executorch(ExecutorchBackendConfig(target=target)).buffer


def executed(buffer, inputs):
    """Run a file that the compiler wrote; `etx check` must have nothing against it."""
    assert load_target("etx").check(read_pte(buffer)) == []
    result = etx_runtime.load(buffer)(*on_device(inputs))
    return [torch.as_tensor(part) for part in tree_flatten(result)[0]]


def spectrum(x):
    return torch.fft.rfft(x)


MODELS = {
    "abs of complex": (lambda x: spectrum(x).abs(), X),
    "stft": (
        lambda x: torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True).abs(),
        X,
    ),
    "complex == complex": (lambda x: spectrum(x) == spectrum(x * 1), X),
    "complex != number": (lambda x: spectrum(x) != 0, X),
    "dropout of all": (lambda x: F.dropout(x, 1.0, True), X),
    "to complex": (lambda x: torch.view_as_real(x.to(torch.complex64)), X),
    "to complex128": (lambda x: x.int().to(torch.complex128).abs(), X),
    "mask that is larger": (torch.masked_select, X[0], X > 3),
    "mask that broadcasts": (lambda x, m: torch.masked_select(x, m) + 1, X[:, :1], X[0] > 3),
    "roll of all": (lambda x: x.roll(3), X),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("target", ["etx", "executorch"])
def test_what_is_written_runs(name, target):
    function, *inputs = MODELS[name]
    (actual,) = executed(lowered(function, tuple(inputs), target), inputs)
    torch.testing.assert_close(actual, function(*inputs), rtol=1e-4, atol=1e-4)


def test_dropout_in_training():
    kept = executed(
        lowered(lambda x: F.dropout(x, 0.5, True), (torch.ones(4000),)), (torch.ones(4000),)
    )
    assert set(kept[0].unique().tolist()) == {0.0, 2.0}
    assert 0.4 < kept[0].mean().item() / 2 < 0.6


def test_a_product_of_complex_tensors_is_refused_with_its_line():
    with pytest.raises(UnsupportedError) as caught:
        lowered(lambda x: torch.view_as_real(spectrum(x) * spectrum(x)), (X,))
    (problem,) = caught.value.problems
    assert "has aten::mul.out with self of" in problem.message
    assert "test_exported_means_runs.py" in problem.source
    pte = read_pte(lowered(lambda x: torch.view_as_real(spectrum(x) * spectrum(x)), (X,), None))
    assert [found.message for found in load_target("etx").check(pte)] == [problem.message]


@cache
def samples():
    """Return what may be drawn: an OpInfo and a dtype that it takes."""
    return [(op, dtype) for op in op_db for dtype in DTYPES if dtype in op.dtypes]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(SAMPLES))
def test_a_drawn_sample_runs(number):
    draw = random.Random(f"{SEED} {number}")
    op, dtype = draw.choice(samples())
    torch.manual_seed(number)
    with torch.no_grad():
        found = list(islice(op.sample_inputs("cpu", dtype), CONSIDERED))
    if not found:
        return
    sample = draw.choice(found)
    leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
    inputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def call(*tensors):
        given = iter(tensors)
        filled = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        first, args, kwargs = tree_unflatten(filled, spec)
        return op.op(first, *args, **kwargs)

    try:
        buffer = lowered(call, tuple(inputs))
    except EtxError:
        return
    except Exception as error:
        if type(error).__module__.startswith("etx"):
            raise
        return
    try:
        executed(buffer, inputs)
    except Exception as error:
        error.add_note(f"ETX_SEED={SEED}, {number}: {op.formatted_name} {dtype} {sample.summary()}")
        raise
