# SPDX-License-Identifier: BSD-3-Clause
"""The portable kernels under PyTorch's own harness: OpInfo's samples, and opcheck."""

from __future__ import annotations

import random
import warnings
from itertools import islice
from numbers import Number

import pytest
import torch
from portable_ops import Untaken, register
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DTYPES = (torch.float32, torch.int64)
LOOSE = {"rtol": 2e-5, "atol": 2e-5}


ARBITRARY = {"aten.topk.default": 1}
"""Operators of whose results only so many are told: of equal elements either index is right."""


def told(op):
    return ARBITRARY.get(str(op), len(op._schema.returns) + 100)


def compare(given, expected):
    torch.testing.assert_close(given, expected, equal_nan=True, check_stride=False, **LOOSE)


@pytest.fixture(scope="module")
def portable():
    library, found = register()
    yield found
    library._destroy()


class Portable(TorchDispatchMode):
    """Calls ours in place of ATen's operators and compares the two."""

    def __init__(self, table):
        super().__init__()
        self.table, self.compared, self.untaken = table, {}, 0

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        pairs = zip(op._schema.arguments, args, strict=False)
        wraps = any(str(a.type) == "Tensor" and isinstance(x, Number) for a, x in pairs)
        if op not in self.table or wraps:
            return op(*args, **kwargs)
        expected = op(*args, **kwargs)
        if any(x.device.type != "cpu" for x in tree_leaves(expected)):
            return expected
        try:
            given = self.table[op](*args, **kwargs)
        except Untaken:
            self.untaken += 1
            return expected
        compare(tuple(tree_leaves(given))[: told(op)], tuple(tree_leaves(expected))[: told(op)])
        self.compared[op] = self.compared.get(op, 0) + 1
        return expected


def test_every_family_has_operators(portable):
    names = {op._schema.name for op in portable}
    assert len(portable) > 200
    assert {"aten::add", "aten::sum", "aten::cat", "aten::gather", "aten::convolution"} <= names


def test_opinfo_samples(portable, request):
    seed, count = (request.config.getoption(f"--samples{o}") for o in ("-seed", ""))
    rows = [(i, d) for i in op_db for d in DTYPES if d in i.supported_dtypes("cpu")]
    mode = Portable(portable)
    for info, dtype in random.Random(seed).sample(rows, min(count, len(rows))):
        if info.name.startswith("jiterator"):
            continue
        torch.manual_seed(0)
        for sample in islice(info.sample_inputs("cpu", dtype, requires_grad=False), 3):
            try:
                with warnings.catch_warnings(), mode:
                    warnings.simplefilter("ignore")
                    info.op(sample.input, *sample.args, **sample.kwargs)
            except AssertionError as error:
                raise AssertionError(f"{info.formatted_name} {dtype}: {error}") from error
    assert mode.untaken == 0
    assert sum(mode.compared.values()) > min(count, len(rows))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("add.Tensor", (torch.randn(2, 3), torch.randn(3))),
        ("relu.default", (torch.randn(2, 3),)),
        ("sum.dim_IntList", (torch.randn(2, 3), [1])),
        ("_softmax.default", (torch.randn(2, 3), -1, False)),
        ("cat.default", ([torch.randn(2, 3), torch.randn(1, 3)],)),
        ("gather.default", (torch.randn(2, 3), 1, torch.tensor([[0], [2]]))),
        ("bmm.default", (torch.randn(2, 3, 4), torch.randn(2, 4, 5))),
        ("native_layer_norm.default", (torch.randn(2, 4), [4], None, None, 1e-5)),
    ],
)
def test_opcheck(portable, name, args):
    base, _, overload = name.partition(".")
    op = getattr(getattr(torch.ops.etx_portable, base), overload)
    assert op in portable.values()
    torch.library.opcheck(op, tree_map(lambda x: x, args))
