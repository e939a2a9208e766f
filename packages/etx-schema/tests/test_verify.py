# SPDX-License-Identifier: BSD-3-Clause
"""Each rule of the verifier finds a program that breaks it, and no exported file does."""

from __future__ import annotations

import pytest
from etx_schema import (
    AllocationDetails,
    EValue,
    ExtraTensorInfo,
    FreeCall,
    Instruction,
    IntList,
    KernelCall,
    MoveCall,
    OptionalTensorList,
    ScalarType,
    TensorDataLocation,
    TensorList,
    TensorShapeDynamism,
    UnknownMember,
    read_pte,
    verify,
)
from programs import PROGRAMS, add, counter, delegated


def test_exported_files_are_valid(exported):
    assert verify(read_pte(exported)) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_samples_are_valid(name):
    assert verify(PROGRAMS[name]()) == []


def t(pte, i=0):
    return pte.program.execution_plan[0].values[i].val


def p(pte):
    return pte.program.execution_plan[0]


def call(pte, i=0):
    return p(pte).chains[0].instructions[i].instr_args


BREAKS = [
    (add, lambda f: setattr(f.program, "version", 3), "version 3, the newest known is 0"),
    (add, lambda f: f.program.execution_plan.clear(), "the program has no methods"),
    (add, lambda f: f.program.execution_plan.append(p(f)), "two methods have this name"),
    (add, lambda f: setattr(p(f), "name", ""), "a method has no name"),
    (add, lambda f: p(f).chains.clear(), "0 chains, expected 1"),
    (add, lambda f: p(f).inputs.append(9), "input 2 is value 9, there are 4 values"),
    (add, lambda f: p(f).outputs.append(-1), "output 1 is value -1"),
    (add, lambda f: setattr(p(f).operators[0], "name", None), "operator 0 has no name"),
    (add, lambda f: p(f).non_const_buffer_sizes.__setitem__(0, 5), r"sizes\[0\] is 5"),
    (add, lambda f: p(f).non_const_buffer_sizes.__setitem__(1, 80), "24 bytes at 64 of arena 0"),
    (add, lambda f: setattr(t(f), "scalar_type", ScalarType(99)), "scalar type 99"),
    (add, lambda f: setattr(t(f), "sizes", [1] * 17), "rank 17, at most 16"),
    (add, lambda f: setattr(t(f), "sizes", [-1, 2]), r"sizes \[-1, 2\]"),
    (add, lambda f: setattr(t(f), "sizes", [2**30, 2]), "arena 0, which has 96"),
    (add, lambda f: setattr(t(f), "sizes", [2**31 - 1] * 2), "overflow"),
    (add, lambda f: setattr(t(f), "dim_order", [0, 0]), "expected a permutation of 2 dimensions"),
    (add, lambda f: setattr(t(f), "dim_order", []), "expected a permutation of 2 dimensions"),
    (add, lambda f: setattr(t(f), "storage_offset", 4), "storage offset 4"),
    (add, lambda f: setattr(t(f), "layout", 1), "layout 1, expected 0"),
    (
        add,
        lambda f: setattr(t(f), "shape_dynamism", TensorShapeDynamism.DYNAMIC_UNBOUND),
        "DYNAMIC_UNBOUND",
    ),
    (add, lambda f: setattr(t(f), "data_buffer_idx", 1), "entry 1 of 0 initial values"),
    (add, lambda f: setattr(t(f), "allocation_info", AllocationDetails(2)), "memory id 2, there"),
    (add, lambda f: setattr(t(f), "allocation_info", AllocationDetails(1, 0, 1)), "at 4294967296"),
    (
        add,
        lambda f: setattr(
            t(f), "extra_tensor_info", ExtraTensorInfo(location=TensorDataLocation.EXTERNAL)
        ),
        "external but has no name",
    ),
    (counter, lambda f: setattr(t(f, 1), "data_buffer_idx", 2), "entry 2 of 1 constants"),
    (counter, lambda f: setattr(t(f, 1), "sizes", [4]), "needs 16 bytes, entry 1 has 12"),
    (counter, lambda f: setattr(t(f, 5), "items", [0]), "value 0, a Tensor, expected Int"),
    (counter, lambda f: setattr(t(f, 5), "items", [77]), "item 0 is value 77"),
    (
        counter,
        lambda f: setattr(t(f), "extra_tensor_info", ExtraTensorInfo(mutable_data_segments_idx=1)),
        "mutable-data segment 1 of 1",
    ),
    (add, lambda f: setattr(p(f).values[3], "val", None), "value 3: it has no type"),
    (add, lambda f: setattr(p(f).values[3], "val", UnknownMember(40, 0)), "type number 40"),
    (add, lambda f: p(f).values.insert(0, EValue(TensorList([1]))), "value 1, which comes later"),
    (
        add,
        lambda f: p(f).values.append(EValue(OptionalTensorList([-1, 3]))),
        "value 3, a Int, expected Tensor or Null",
    ),
    (add, lambda f: p(f).values.append(EValue(IntList([-1]))), "item 0 is value -1"),
    (add, lambda f: setattr(call(f), "op_index", 1), "instruction 0: it calls operator 1 of 1"),
    (add, lambda f: call(f).args.append(4), "argument 5 is value 4"),
    (counter, lambda f: setattr(call(f, 1), "destination_instruction", 5), "instruction 5 of 4"),
    (
        counter,
        lambda f: setattr(call(f, 1), "cond_value_index", 5),
        "a IntList, expected Bool or Int or Tensor",
    ),
    (counter, lambda f: setattr(call(f, 3), "move_from", 6), "the source is value 6"),
    (counter, lambda f: setattr(call(f, 3), "move_to", -2), "the target is value -2"),
    (add, lambda f: p(f).chains[0].instructions.append(Instruction(FreeCall(3))), "what it frees"),
    (add, lambda f: p(f).chains[0].instructions.append(Instruction()), "it has no kind"),
    (
        add,
        lambda f: p(f).chains[0].instructions.append(Instruction(UnknownMember(9, 0))),
        "instruction kind 9",
    ),
    (delegated, lambda f: setattr(call(f), "delegate_index", 1), "it calls delegate 1 of 1"),
    (delegated, lambda f: setattr(p(f).delegates[0], "id", None), "delegate 0 has no id"),
    (delegated, lambda f: setattr(p(f).delegates[0], "processed", None), "has no blob"),
    (
        delegated,
        lambda f: setattr(p(f).delegates[0].processed, "index", 2),
        "refers to blob 2 of 2",
    ),
]


@pytest.mark.parametrize(("build", "damage", "message"), BREAKS, ids=[m for *_, m in BREAKS])
def test_damage_is_found(build, damage, message):
    import re

    pte = build()
    damage(pte)
    found = [str(problem) for problem in verify(pte)]
    assert any(re.search(message, text) for text in found), found


def test_all_problems_at_once_with_their_lines():
    pte = counter()
    call(pte).args[:] = [50, 51]
    call(pte, 3).move_to = 60
    found = [str(problem) for problem in verify(pte)]
    assert len(found) == 3
    assert found[0].endswith("argument 0 is value 50, there are 6 values [a.b, m.py:7]")


def test_end_of_method_is_a_valid_jump():
    pte = counter()
    call(pte, 1).destination_instruction = 4
    assert verify(pte) == []
    assert isinstance(call(pte), KernelCall)
    assert isinstance(call(pte, 3), MoveCall)
