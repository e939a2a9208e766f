# SPDX-License-Identifier: BSD-3-Clause
"""What is outside of an integer operator's contract is refused at load, and what loads runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
import torch
from arguments import DTYPES, Out
from etx_runtime import LoadError
from harness import PLUGIN, RECORDER
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integer_calls import INTEGER_CALLS
from record import Recorded, bytes_of

Arguments = tuple[Any, ...]
STATIC = es.TensorShapeDynamism.STATIC
OTHERS = (torch.int8, torch.uint8, torch.int32, torch.int64, torch.float32, torch.float16)
LARGEST = 2**31 - 1
MOST_KEPT = 12
"""Programs of an operator that are run under sanitizers, too."""
KEPT: Counter[str] = Counter()
ANY = {"count_include_pad", "is_batch_first", "is_reverse", "is_relu"}
"""Arguments without a wrong value."""
INT8 = (-129, 128, 300, -(2**40), 2**62)
SCALES = (0.0, -0.0, math.nan, math.inf, -math.inf, 1e-60, 1e60, -0.5)
LISTS = ([], [1], [1, 1, 1], [0, 1], [1, -1], [1, 2**31], [99, 1], [2**62, 2**62])
PADDINGS = ([], [0, 0], [0, 0, 0, -1], [0, 0, 2**31, 0], [0] * 5, [2**62] * 4)
NUMBERS: dict[str, tuple[Any, ...]] = {
    "groups": (0, -1, 3, 2**40),
    "group_size": (0, -1, 3, 4, -(2**40)),
    "out_features": (0, -1, 17, -(2**40), 2**40, 2**63 - 1),
    "dim": ([4], [-5], [1, 1], [1, -3], [2**62], [0], []),
    "keepdim": (True,),
    "padding": PADDINGS,
}


class Loaded(Recorded):
    """One call as a method without inputs whose tensors are constants, and outputs static."""

    def __init__(self, *args: Any) -> None:
        self.constants: list[bytes] = []
        super().__init__(*args)

    def serialize(self) -> bytes:
        program = es.Program(version=0, execution_plan=[self.plan])
        return es.serialize_pte(es.PteFile(program, constants=self.constants))

    def tensor(self, arg: Any) -> int:
        index = super().tensor(arg)
        tensor: Any = self.plan.values[index].val
        tensor.shape_dynamism = STATIC
        if not isinstance(arg, Out):
            tensor.allocation_info = None
            self.constants.append(bytes_of(arg, list(range(arg.dim()))) or b"\0")
            tensor.data_buffer_idx = len(self.constants)
        return index


def program_of(name: str, args: Arguments) -> bytes:
    parameters = PLUGIN.kernels[name].parameters
    program = Loaded(name, parameters, args, ()).serialize()
    recorded = f"{name.replace('::', '.')}-at_load{len(RECORDER.programs)}"
    KEPT[name] += 1
    if KEPT[name] <= MOST_KEPT:
        RECORDER.programs[recorded] = program
    return program


def refusal(name: str, args: Arguments) -> LoadError | None:
    """Return why the call is not loaded; run it where it is."""
    program = etx_runtime.Runtime.get().load_program(program_of(name, args))
    try:
        method = program.load_method("forward")
    except LoadError as error:
        return error
    method.execute([])
    return None


def right(name: str) -> tuple[list[str], list[Any]]:
    names, args, outs = INTEGER_CALLS[name]
    static = [Out(out.shape, out.dtype, slack=0) for out in outs]
    return names.split(), [*args, *static]


def changed(tensor: torch.Tensor, **other: Any) -> torch.Tensor:
    """Return a tensor of ones of other shape or dtype."""
    return torch.ones(other.get("shape", tensor.shape)).to(other.get("dtype", tensor.dtype))


def shapes(shape: Any) -> Iterator[tuple[int, ...]]:
    sizes = tuple(shape)
    yield (*sizes, 1)
    if sizes:
        yield sizes[:-1]
    for d, size in enumerate(sizes):
        for wrong in (0, max(size - 1, 0), size + 1, size + 16):
            yield (*sizes[:d], wrong, *sizes[d + 1 :])


def numbers(name: str, tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield contents that the argument `name` must not have."""
    if name == "scale" or name.endswith("scales"):
        for value in (math.nan, math.inf, -math.inf, *((0.0, -1.0) if name == "scale" else ())):
            wrong = tensor.clone()
            wrong.flatten()[-1] = value
            yield wrong
    if name in ("weight_sums", "bias") and tensor.dtype is torch.int32:
        for number in (LARGEST, -LARGEST - 1):
            wrong = tensor.clone()
            wrong.flatten()[0] = number
            yield wrong


def wrong_values(name: str, given: Any) -> Iterator[Any]:
    if name in NUMBERS:
        yield from NUMBERS[name]
    elif isinstance(given, Out):
        yield from (Out(given.shape, dtype, slack=0) for dtype in OTHERS if dtype != given.dtype)
        yield from (Out(shape, given.dtype, slack=0) for shape in shapes(given.shape))
    elif isinstance(given, torch.Tensor):
        yield from (changed(given, dtype=dtype) for dtype in OTHERS if dtype != given.dtype)
        yield from (changed(given, shape=shape) for shape in shapes(given.shape))
        yield from numbers(name, given)
    elif isinstance(given, bool):
        yield not given
    elif isinstance(given, int):
        yield from INT8
    elif isinstance(given, float):
        yield from SCALES if "scale" in name else (math.nan, -math.inf if "max" in name else 2.0)
    else:
        yield from LISTS


@pytest.mark.parametrize("name", INTEGER_CALLS)
def test_every_wrong_argument_is_refused(name: str) -> None:
    names, args = right(name)
    assert refusal(name, tuple(args)) is None
    for i, (argument, value) in enumerate(zip(names, args, strict=True)):
        errors = []
        for wrong in wrong_values(argument, value):
            error = refusal(name, (*args[:i], wrong, *args[i + 1 :]))
            if error is not None:
                assert (error.name, error.instruction) == (name, 0)
                assert "; arguments: " in str(error)
                errors.append(str(error))
        assert bool(errors) != (argument in ANY), argument
        if isinstance(value, (int, float, list)) and argument not in (*ANY, "keepdim"):
            assert any(argument in error for error in errors), (argument, errors)


def test_the_error_says_what_was_given() -> None:
    _, args = right("etx::quantized_linear.out")
    args[5] = 300
    text = str(refusal("etx::quantized_linear.out", tuple(args)))
    assert text.startswith(
        "etx::quantized_linear.out: input_zero_point must be within int8, -128 to 127"
        " [instruction 0, InvalidArgument (0x12)]; arguments: int8[2, 8], int8[1, 2, 16, 4],"
        " int32[3], int32[3], float32[3], 300, 0, -128, 127, int8[2, 3], int8[2, 3]"
    )


@pytest.mark.parametrize("name", ["etx::quantized_linear.out", "etx::dynamic_linear.out"])
def test_a_depth_at_which_int32_overflows(name: str) -> None:
    for depth, fits in ((65793, True), (65796, False)):
        _, args = right(name)
        weight = torch.zeros(1, -(-depth // 4), 16, 4, dtype=torch.int8)
        dtype = args[0].dtype
        columns = [torch.zeros(1, dtype=torch.int32), torch.ones(1)]
        x, out = torch.zeros(1, depth, dtype=dtype), Out((1, 1), dtype, slack=0)
        bias: list[Any] = [columns[0], None, columns[1]]
        if name == "etx::dynamic_linear.out":
            bias = [*columns, None]
        error = refusal(name, (x, weight, *bias, *args[5:-1], out))
        assert (error is None) == fits
        assert fits or "sums must fit int32" in str(error)


@pytest.mark.parametrize(
    ("blocks", "fits"), [(1, True), (2, True), (8, True), (3, False), (9, False)]
)
def test_blocks_of_a_weight_that_do_not_divide_the_groups(blocks: int, fits: bool) -> None:
    name, groups = "etx::quantized_conv.out", 8
    _, args = right(name)
    steps = -(-groups // min(blocks, groups) // 4)
    args[1] = torch.zeros(blocks, steps, 16, 4, dtype=torch.int8)
    args[2] = args[3] = torch.zeros(groups, dtype=torch.int32)
    args[4], args[10], args[-1] = (
        torch.ones(groups),
        groups,
        Out((1, 3, 4, groups), torch.int8, slack=0),
    )
    error = refusal(name, tuple(args))
    assert (error is None) == fits
    assert blocks != 3 or "groups for each block" in str(error)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, Arguments]:
    """Draw a call with any of its arguments wrong."""
    name = draw(st.sampled_from(sorted(INTEGER_CALLS)))
    names, given = right(name)
    args = list(given)
    for i in draw(st.lists(st.integers(0, len(args) - 1), max_size=3)):
        values = list(wrong_values(names[i], given[i]))
        args[i] = values[draw(st.integers(0, len(values) - 1))]
    return name, tuple(args)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(calls())
def test_what_is_loaded_runs(call: tuple[str, Arguments]) -> None:
    error = refusal(*call)
    assert error is None or (error.name == call[0] and error.instruction == 0)


def changing(args: list[Any], dynamic: bool) -> bytes:
    """A linear layer of an input of up to 2 rows, whose output_min is an input where `dynamic`."""
    name = "etx::quantized_linear.out"
    made = Loaded(name, PLUGIN.kernels[name].parameters, args, ())
    values = made.plan.values
    call = made.plan.chains[0].instructions[0].instr_args
    x, out = (values[call.args[i]].val for i in (0, -1))
    x.data_buffer_idx, x.allocation_info = 0, es.AllocationDetails(memory_id=1)
    for tensor in (x, out):
        tensor.shape_dynamism = es.TensorShapeDynamism.DYNAMIC_BOUND
    made.plan.inputs = [call.args[0]] + ([call.args[7]] if dynamic else [])
    return made.serialize()


def test_dynamic_sizes_are_bounds() -> None:
    _, args = right("etx::quantized_linear.out")
    run = etx_runtime.Runtime.get().load_program(changing(args, False)).load_method("forward")
    for rows in (2, 1, 2):
        (y,) = run.execute([np.ones((rows, 8), np.int8)])
        assert y.shape == (rows, 3)
    args[0] = torch.ones(2, 9, dtype=torch.int8)
    with pytest.raises(LoadError, match="weight must be packed"):
        etx_runtime.Runtime.get().load_program(changing(args, False)).load_method("forward")


def test_numbers_that_change_are_checked_when_it_runs() -> None:
    _, args = right("etx::quantized_linear.out")
    program = etx_runtime.Runtime.get().load_program(changing(args, True))
    run = program.load_method("forward")
    x = np.ones((2, 8), np.int8)
    run.execute([x, -100])
    with pytest.raises(etx_runtime.ExecutionError, match="output_min and output_max"):
        run.execute([x, 300])


def test_every_operator_is_swept() -> None:
    assert DTYPES.keys() >= set(OTHERS)
    own = {name for name in PLUGIN.kernels if name.startswith("etx::") and name.endswith(".out")}
    unchecked = [
        "attention",
        "bmm_nt",
        "lstm",
        "gru",
        "max_pool2d",
        "rnn",
        "narrow_linear",
        "narrow_conv",
        "polynomial",
    ]
    assert own == {*INTEGER_CALLS, *(f"etx::{name}.out" for name in unchecked)}
