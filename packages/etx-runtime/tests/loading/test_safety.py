# SPDX-License-Identifier: BSD-3-Clause
"""What a program may try at run time: each time an error that says where, and nothing else."""

from __future__ import annotations

import etx_schema as es
import numpy as np
import pytest
from etx_runtime import ExecutionError, LoadError, Runtime
from programs import BOOL, FLOAT, LONG, Builder, loop

ONES = np.ones(2, np.float32)


def test_view_is_undone_before_the_next_execution(runtime: Runtime) -> None:
    """The view's result has 100 elements at the end, and 4 in the caller's memory again."""
    b = Builder()
    x = b.input(b.tensor((100,)))
    view = b.tensor((4,), memory="unbound", dynamic=True)
    copy = b.tensor((100,), dynamic=True)
    b.add(view, view, copy)
    b.call("executorch_prim::et_view.default", x, b.value(es.IntList(items=[b.int(-1)])), view)
    b.output(view, copy)
    run = runtime.load_program(b.serialize()).load_method("forward")
    for _ in range(3):
        outputs = run.execute([np.ones(100, np.float32)])
        assert [np.asarray(out).shape for out in outputs] == [(100,), (4,)]


@pytest.mark.parametrize("planned", [False, True])
def test_view_of_a_part(runtime: Runtime, planned: bool) -> None:
    """It reads the caller's memory, or is copied into its own; a part of a part also."""
    b = Builder()
    x = b.input(b.tensor((6,)))
    memory = {} if planned else {"memory": "unbound"}
    part, last = b.tensor((4,), **memory), b.tensor((2,), **memory)
    total = b.tensor((2,))
    b.call("etx::view_at.default", x, b.int(1), part)
    b.call("etx::view_at.default", part, b.int(2), last)
    b.add(last, last, total)
    b.output(total)
    run = runtime.load_program(b.serialize()).load_method("forward")
    for first in (0.0, 10.0):
        (result,) = run.execute([np.arange(6, dtype=np.float32) + first])
        assert np.asarray(result).tolist() == [2 * (first + 3), 2 * (first + 4)]


@pytest.mark.parametrize("first", [-1, 3, 2**40])
def test_view_beyond_its_input(runtime: Runtime, first: int) -> None:
    b = Builder()
    x = b.input(b.tensor((6,)))
    part = b.tensor((4,), memory="unbound")
    b.call("etx::view_at.default", x, b.int(first), part)
    b.add(part, part, b.tensor((4,)))
    run = runtime.load_program(b.serialize()).load_method("forward")
    with pytest.raises(ExecutionError, match="failed at instruction 0"):
        run.execute([np.ones(6, np.float32)])


def test_view_of_itself_does_not_move(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((6,)))
    part = b.tensor((3,), memory="unbound")
    b.call("etx::view_at.default", x, b.int(3), part)
    b.call("etx::view_at.default", part, b.int(1), part)
    run = runtime.load_program(b.serialize()).load_method("forward")
    with pytest.raises(ExecutionError, match="failed at instruction 1"):
        run.execute([np.ones(6, np.float32)])


def test_freed_values(runtime: Runtime) -> None:
    b = Builder()
    x = b.input(b.tensor((2,)))
    b.free(x)
    b.move(x, b.tensor((2,)))
    run = runtime.load_program(b.serialize()).load_method("forward")
    with pytest.raises(ExecutionError, match=r"failed at instruction 1: .*was freed"):
        run.execute([ONES])
    b = Builder()
    x = b.input(b.tensor((2,)))
    other = b.tensor((2,))
    b.move(x, other)
    b.free(x)
    b.output(x, other)
    run = runtime.load_program(b.serialize()).load_method("forward")
    with pytest.raises(ExecutionError, match="output 0: the program freed this output"):
        run.execute([ONES])
    b = Builder()
    condition = b.input(b.tensor((1,), BOOL))
    b.free(condition)
    b.jump_false(condition, 2)
    run = runtime.load_program(b.serialize()).load_method("forward")
    with pytest.raises(ExecutionError, match=r"failed at instruction 1: .*was freed"):
        run.execute([np.ones(1, bool)])


def test_moves_keep_kind_dtype_and_rank_in_both_branches(runtime: Runtime) -> None:
    b = Builder()
    yes = b.input(b.tensor((1,), BOOL))
    result = b.tensor((2,), FLOAT)
    fine, wrong = b.tensor((2,), FLOAT), b.tensor((2,), LONG)
    b.jump_false(yes, 3)
    b.move(fine, result)
    b.jump_false(b.bool(False), 4)
    b.move(fine, result)
    b.output(result)
    assert runtime.load_program(b.serialize()).method_names == {"forward"}
    for source in (wrong, b.tensor((2, 1), FLOAT), b.int(1), b.none()):
        for at in (1, 3):
            fixed = b.chain.instructions[at]
            b.chain.instructions[at] = es.Instruction(
                instr_args=es.MoveCall(move_from=source, move_to=result)
            )
            with pytest.raises(LoadError, match=r"a move changes the kind, dtype or rank.*byte"):
                runtime.load_program(b.serialize())
            b.chain.instructions[at] = fixed


def test_endless_loop_ends(runtime: Runtime) -> None:
    run = runtime.load_program(loop(1 << 40)).load_method("forward")
    with pytest.raises(ExecutionError, match="instruction budget is used up") as caught:
        run.execute([])
    assert (caught.value.code, caught.value.instruction) == (0x25, 4)
    run = runtime.load_program(loop(100)).load_method("forward")
    run.set_instruction_budget(400)
    assert run.execute([]) == [100]
    run.set_instruction_budget(399)
    with pytest.raises(ExecutionError, match="instruction budget"):
        run.execute([])


def test_numbers_keep_their_kind_when_a_kernel_fails(runtime: Runtime) -> None:
    """The jump after the failure reads the slot as what it was checked to be."""
    b = Builder()
    go, first = b.bool(True), b.bool(True)
    yes = b.input(b.tensor((1,), BOOL))
    b.jump_false(yes, 2)
    b.call("etx_test::spoil", first)
    b.jump_false(first, 3)
    b.output(first, go)
    run = runtime.load_program(b.serialize()).load_method("forward")
    with pytest.raises(ExecutionError, match="spoiled"):
        run.execute([np.ones(1, bool)])
    assert run.execute([np.zeros(1, bool)]) == [False, True]


def test_only_minus_one_means_none(runtime: Runtime) -> None:
    b = Builder()
    x = b.tensor((2,))
    b.value(es.OptionalTensorList(items=[x, -1]))
    runtime.load_program(b.serialize())
    b.value(es.OptionalTensorList(items=[x, -2]))
    with pytest.raises(LoadError, match="an item of a tensor list is not a value of the method"):
        runtime.load_program(b.serialize())


def test_initial_values_go_where_they_were_planned(runtime: Runtime) -> None:
    """A move has put the caller's two elements in the place of a buffer of four."""
    b = Builder()
    x = b.input(b.tensor((2,), memory="unbound"))
    buffer = b.tensor((4,), data=np.full(4, 7, np.float32).tobytes(), name="buffer")
    b.move(x, buffer)
    method = runtime.load_program(b.serialize()).load_method("forward")
    given = np.ones(8, np.float32)
    method.execute([given[:2]])
    method.reset_state()
    assert given.tolist() == [1] * 8


@pytest.mark.parametrize("sizes", [[2**31 - 1] * 2, [2**31 - 1] * 3, [2**16] * 4, [2**21] * 3])
@pytest.mark.parametrize("dynamic", [False, True])
def test_sizes_whose_product_no_memory_holds(
    runtime: Runtime, sizes: list[int], dynamic: bool
) -> None:
    b = Builder()
    x = b.input(b.tensor((2,)))
    b.output(x)
    tensor = b.plan.values[x].val
    tensor.sizes, tensor.dim_order = sizes, list(range(len(sizes)))
    if dynamic:
        tensor.shape_dynamism = es.TensorShapeDynamism.DYNAMIC_BOUND
    with pytest.raises(LoadError, match="byte"):
        runtime.load_program(b.serialize())


@pytest.mark.parametrize("offset", [12, 2**31 - 8, 2**32 - 8, 2**63 - 8, 2**64 - 8])
def test_offsets_beyond_the_arena(runtime: Runtime, offset: int) -> None:
    b = Builder()
    x = b.input(b.tensor((2,)))
    b.output(x)
    place = b.plan.values[x].val.allocation_info
    place.memory_offset_low, place.memory_offset_high = offset % 2**32, offset >> 32
    b.plan.non_const_buffer_sizes[1] = 16
    with pytest.raises(LoadError, match="byte"):
        runtime.load_program(b.serialize()).load_method("forward")


@pytest.mark.parametrize("size", [-1, -(2**63)])
def test_arenas_of_no_size(runtime: Runtime, size: int) -> None:
    b = Builder()
    b.output(b.input(b.tensor((2,))))
    b.plan.non_const_buffer_sizes[1] = size
    with pytest.raises(LoadError, match="byte"):
        runtime.load_program(b.serialize())
