# SPDX-License-Identifier: BSD-3-Clause
"""Rows that say `in_place`: the result may lie on an argument of its dtype, sizes and layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from arguments import Over
from etx_schema.targets.rows import in_place
from etx_schema.targets.takes import misfit_of
from harness import DTYPES, PLUGIN, KernelError
from intercept import arguments_of, is_like, kernel_name, kinds_of, out_like, rows, variant_of
from torch._ops import OpOverload
from torch.testing import assert_close

SHAPES = ((3, 6007), (1,), (2, 5, 3, 4))
LAST = (2, 5, 3, 4)
MASKS = ("condition", "mask")
NUMBERS = {"alpha": 1, "rounding_mode": "floor", "approximate": "tanh", "eps": 0.1}
APART = {
    "aten::clone.out": "the planner drops copies",
    "aten::_conj_physical.out": "it copies its argument before it negates a part",
}
UNTAGGED = {"aten::floor_divide.out", "aten::hardswish.out"}


def operators() -> Iterator[tuple[str, OpOverload]]:
    """Yield each kernel with the operator of ATen that it computes."""
    for kernel in PLUGIN.kernels:
        namespace, _, name = kernel.partition("::")
        packet = getattr(torch.ops.aten, name.partition(".")[0], None)
        for overload in packet.overloads() if namespace == "aten" and packet else ():
            op = getattr(packet, overload)
            variant = variant_of(op)
            if variant not in (None, op) and kernel_name(variant) == kernel:
                yield kernel, op


OPERATORS = dict(operators())
INTEGER = "etx::"
"""In test_integer.py."""
IN_PLACE = [k for k, row in rows().items() if in_place(row) and not k.startswith(INTEGER)]


def values(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    if dtype == torch.bool:
        drawn = torch.randint(2, shape).bool()
    elif dtype.is_floating_point or dtype.is_complex:
        drawn = (torch.rand(shape) * 5 + 0.1).to(dtype)
    else:
        drawn = torch.randint(1, 6, shape).to(dtype)
    is_last = shape == LAST
    return drawn.contiguous(memory_format=torch.channels_last) if is_last else drawn


def calls(op: OpOverload, dtype: torch.dtype, others: torch.dtype) -> Iterator[list[Any]]:
    """Yield arguments: the first tensor of one dtype, those after it of another."""
    for shape in SHAPES:
        args: list[Any] = []
        kinds = iter((dtype, *[others] * 3))
        for argument in op._schema.arguments:
            if argument.name in MASKS:
                args.append(values(shape, torch.bool))
            elif "Tensor" in str(argument.type):
                args.append(values(shape, next(kinds)))
            elif str(argument.type) == "bool":
                args.append(False)
            else:
                args.append(NUMBERS.get(argument.name, 2))
        yield args


def eager(op: OpOverload, args: list[Any]) -> torch.Tensor | None:
    given = dict(zip((a.name for a in op._schema.arguments), args, strict=True))
    keywords = {a.name: given[a.name] for a in op._schema.arguments if a.kwarg_only}
    try:
        result: torch.Tensor = op(*[v for k, v in given.items() if k not in keywords], **keywords)
    except RuntimeError:
        return None
    return result


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("kernel", IN_PLACE)
def test_results_lie_on_arguments(kernel: str) -> None:
    torch.manual_seed(1)
    op, count = OPERATORS[kernel], 0
    for dtype in DTYPES:
        for others in (dtype, torch.uint8):
            for args in calls(op, dtype, others):
                count += check(kernel, op, args)
    assert count


def check(kernel: str, op: OpOverload, args: list[Any]) -> int:
    """Compare with eager and with a result apart; return how often memory was shared."""
    expected = eager(op, args)
    if expected is None or expected.dtype not in DTYPES:
        return 0
    given = list(arguments_of(op, tuple(args), {}).values())
    kinds = [
        [kind] if kind else [] for kind in kinds_of(PLUGIN.kernels[kernel], [*given, expected])
    ]
    if misfit_of(rows()[kernel], kinds, str(expected.dtype).removeprefix("torch.")):
        return 0
    (apart,) = PLUGIN.call(kernel, *given, out_like(expected))
    assert_close(apart, expected, rtol=2e-2, atol=1e-2, equal_nan=True, check_stride=False)
    tensors = [(i, value) for i, value in enumerate(given) if isinstance(value, torch.Tensor)]
    places = [i for i, value in tensors if is_like(value, expected)]
    for place in places:
        (over,) = PLUGIN.call(kernel, *given, Over(place))
        assert_close(over, apart, rtol=0, atol=0, equal_nan=True)
    if len(places) > 1:
        first = given[places[0]]
        twice = [first if i in places else value for i, value in enumerate(given)]
        (apart,) = PLUGIN.call(kernel, *twice, out_like(expected))
        (over,) = PLUGIN.call(kernel, *twice, Over(places[0]))
        assert_close(over, apart, rtol=0, atol=0, equal_nan=True)
    return len(places)


def test_pointwise_operators_say_so() -> None:
    """Torch's tag and the table agree, except for operators that are apart for a reason."""
    tagged = {kernel for kernel, op in OPERATORS.items() if torch.Tag.pointwise in op.tags}
    assert (tagged | UNTAGGED) - set(APART) == set(IN_PLACE)
    assert set(APART) <= tagged
    assert not UNTAGGED & tagged


@pytest.mark.parametrize(
    ("kernel", "rest"), [("aten::flip.out", [[0]]), ("aten::roll.out", [[1], [0]])]
)
def test_other_kernels_need_memory_apart(kernel: str, rest: list[Any]) -> None:
    x = torch.arange(7)
    (apart,) = PLUGIN.call(kernel, x, *rest, out_like(x))
    try:
        (over,) = PLUGIN.call(kernel, x, *rest, Over(0))
    except KernelError:
        return
    assert not torch.equal(over, apart)
    assert not in_place(rows()[kernel])
