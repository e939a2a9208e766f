# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own samples: each core operator that eager calls gives the same bits through a file.

CI draws `--samples` of them by `--samples-seed`; `nox -s aten-samples` runs all.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import etx_runtime
import pytest
import torch
from one_call import program_of, variant_of
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.bool,
)
UNSET = {
    "aten.empty.memory_format": "its result is not initialised",
    "aten.empty_strided.default": "its result is not initialised",
}
RANDOM = torch.Tag.nondeterministic_seeded


class Calls(TorchDispatchMode):
    """Records the calls of core operators, with copies of what they get."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Any, Any, Any]] = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        is_core = torch.Tag.core in op.tags and not op._schema.is_mutable
        if is_core and variant_of(op) is not None and str(op) not in UNSET:
            self.found.append((op, tree_map(kept, args), tree_map(kept, kwargs)))
        return op(*args, **kwargs)


def kept(value):
    return (
        value.detach().clone(memory_format=torch.contiguous_format)
        if isinstance(value, torch.Tensor)
        else value
    )


def calls_of(info: Any, dtype: torch.dtype) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the calls of all samples of an OpInfo; samples that eager refuses are not samples."""
    torch.manual_seed(0)
    for sample in info.sample_inputs("cpu", dtype, requires_grad=False):
        with warnings.catch_warnings(), Calls() as calls:
            warnings.simplefilter("ignore")
            info.op(sample.input, *sample.args, **sample.kwargs)
        yield from calls.found


def is_plain(results: Any, args: Any) -> bool:
    """True where a file can hold what goes in and comes out."""
    tensors = [x for x in tree_leaves((results, args)) if isinstance(x, torch.Tensor)]
    return bool(tree_leaves(results)) and all(
        x.layout == torch.strided and x.device.type == "cpu" and not x.is_quantized for x in tensors
    )


def check(op: Any, args: Any, kwargs: Any) -> bool:
    """Compare one call with eager; False where a file cannot hold it, or eager refuses it."""
    try:
        expected = op(*args, **kwargs)
    except RuntimeError:  # of a view of more memory than the copy has
        return False
    results = list(expected) if isinstance(expected, (list, tuple)) else [expected]
    if not is_plain(results, (args, kwargs)) or not all(
        isinstance(r, torch.Tensor) for r in results
    ):
        return False
    program, inputs = program_of(op, args, kwargs, results)
    model = etx_runtime.load(program, kernels="aten", outputs="torch")
    given = model.run_method("forward", inputs)
    for got, want in zip(given, results, strict=True):
        if RANDOM in op.tags:
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
        else:
            torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
    return True


def rows() -> list[tuple[Any, torch.dtype]]:
    on_cpu = [info for info in op_db if not info.name.startswith("jiterator")]
    return [(i, d) for i in on_cpu for d in DTYPES if d in i.supported_dtypes("cpu")]


def test_drawn_samples_are_eager(request):
    count, seed = (request.config.getoption(f"--samples{o}") for o in ("", "-seed"))
    draw = random.Random(seed)
    checked = 0
    for info, dtype in draw.sample(rows(), count):
        for op, args, kwargs in islice(calls_of(info, dtype), 3):
            with noted(info, dtype, op):
                checked += check(op, args, kwargs)
    assert checked > count // 3


@pytest.mark.slow
def test_all_samples_are_eager():
    failures: Counter[str] = Counter()
    checked = refused = 0
    for info, dtype in rows():
        for op, args, kwargs in calls_of(info, dtype):
            try:
                done = check(op, args, kwargs)
                checked, refused = checked + done, refused + (not done)
            except Exception as error:
                failures[f"{op}: {str(error)[:200]}"] += 1
    count = sum(failures.values())
    print(f"{checked} calls as eager, {count} not, {refused} that no file holds or eager refuses")
    assert not failures, "\n".join(f"{n} {text}" for text, n in failures.most_common(50))


class noted:
    """Adds to an exception which call it comes from."""

    def __init__(self, info: Any, dtype: torch.dtype, op: Any) -> None:
        self.text = f"{info.formatted_name} {dtype}: {op}"

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            error.add_note(self.text) if hasattr(error, "add_note") else print(self.text)
