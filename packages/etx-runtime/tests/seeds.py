# SPDX-License-Identifier: BSD-3-Clause
"""Small files that use every feature of the formats: what the fuzzers begin with.

`python seeds.py FOLDER` writes them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import etx_schema as es
from programs import BOOL, FLOAT, LONG, Builder, addition, counter, loop


def everything() -> bytes:
    """Every kind of value, instruction and stored data."""
    b = Builder()
    x = b.input(b.tensor((2, 3), dynamic=True))
    constant = b.tensor((2, 3), memory="constant", data=bytes(range(24)))
    state = b.tensor((2, 3), data=bytes(24))
    out = b.tensor((2, 3), dynamic=True)
    flat = b.tensor((6,), memory="unbound", dynamic=True)
    result = b.tensor((2, 3), dynamic=True)
    i, n, done = b.int(0), b.int(0), b.bool(False)
    tensors = b.value(es.TensorList(items=[x, constant]))
    b.value(es.OptionalTensorList(items=[x, -1, b.none()]))
    b.value(es.DoubleList(items=[1.5, 2.5]))
    b.value(es.BoolList(items=[True, False]))
    b.value(es.String(string_val="text"))
    b.call("aten::cat.out", tensors, b.int(0), result, result)
    b.add(x, x, out)
    b.call("executorch_prim::et_view.default", out, b.value(es.IntList(items=[b.int(-1)])), flat)
    b.call("aten::sym_size.int", x, b.int(1), n)
    b.call("executorch_prim::lt.Scalar", i, n, done)
    b.jump_false(done, 8)
    b.call("executorch_prim::add.Scalar", i, b.int(1), i)
    b.jump_false(b.bool(False), 4)
    b.move(b.int(0), i)
    b.move(out, result)
    b.add(state, constant, state)
    b.output(flat, result, n, state)
    delegate(b, "AddByte", [constant, b.tensor((2, 3))])
    return b.serialize()


def delegate(b: Builder, backend: str, args: list[int]) -> None:
    """Call a backend with a blob, an option, and named data under the option's key."""
    b.delegates.append(b"\x03\x04")
    b.plan.delegates.append(
        es.BackendDelegate(
            id=backend,
            processed=es.BackendDelegateDataReference(
                location=es.DataLocation.SEGMENT, index=len(b.delegates) - 1
            ),
            compile_specs=[es.CompileSpec(key="bias", value=b"12")],
        )
    )
    b.named["bias"] = es.NamedBlob(b"\x05")
    b.instruction(es.DelegateCall(delegate_index=len(b.plan.delegates) - 1, args=args))


def branch() -> bytes:
    """cond: a jump over a tensor, a move in both branches, a free."""
    b = Builder()
    yes = b.input(b.tensor((1,), BOOL))
    x = b.input(b.tensor((2, 2)))
    doubled, result = b.tensor((2, 2)), b.tensor((2, 2))
    b.jump_false(yes, 4)
    b.add(x, x, doubled)
    b.move(doubled, result)
    b.jump_false(b.bool(False), 5)
    b.move(x, result)
    b.free(doubled)
    b.output(result)
    return b.serialize()


def unbound() -> bytes:
    """Inputs and outputs in the caller's memory, channels last, a scalar input, bounded sizes."""
    b = Builder()
    x = b.input(b.tensor((1, 2, 3, 4), memory="unbound", order=(0, 2, 3, 1), dynamic=True))
    b.input(b.int(3))
    out = b.tensor((1, 2, 3, 4), memory="unbound", order=(0, 2, 3, 1), dynamic=True)
    b.add(x, x, out)
    b.output(out)
    return b.serialize()


def external() -> bytes:
    """A weight of a .ptd; a second method without instructions."""
    b, constant = Builder(), Builder("answer")
    x = b.input(b.tensor((2, 3)))
    w = b.tensor((2, 3), memory="external", name="w")
    out = b.tensor((2, 3))
    b.add(x, w, out)
    b.output(out)
    constant.plan.non_const_buffer_sizes = [0]
    constant.output(constant.int(42), constant.value(es.String(string_val="yes")))
    return b.serialize(constant)


def probe() -> bytes:
    """A delegate that reads all it is given: every kind of value, and named data."""
    b = Builder()
    x = b.input(b.tensor((3,), LONG))
    values = [b.value(es.IntList(items=[b.int(1), b.int(2)])), b.value(es.DoubleList(items=[0.5]))]
    values += [b.value(es.BoolList(items=[True])), b.value(es.TensorList(items=[x]))]
    values += [b.value(es.OptionalTensorList(items=[x, -1])), b.value(es.String(string_val="a"))]
    delegate(b, "Probe", [x, *values, b.tensor((4,))])
    b.named["weights"] = es.NamedBlob(bytes(40))
    return b.serialize()


def inline() -> bytes:
    """Constants and a blob inside the flatbuffer, as files from before segments have them."""
    b = Builder()
    x = b.input(b.tensor((2,)))
    constant = b.tensor((2,), memory="constant", data=bytes(8))
    out = b.tensor((2,))
    b.add(x, constant, out)
    b.output(out)
    delegate(b, "Probe", [x, out])
    b.named.clear()
    program = b.pte().program
    program.constant_buffer = [es.Buffer(storage=b""), es.Buffer(storage=bytes(8))]
    program.backend_delegate_data = [es.BackendDelegateInlineData(data=b"blob")]
    b.plan.delegates[0].processed.location = es.DataLocation.INLINE
    return es.serialize_pte(es.PteFile(program))


def dtypes() -> bytes:
    """Tensors of many dtypes and ranks, numbers and lists: material for calls of any kernel."""
    b = Builder()
    for dtype in (FLOAT, LONG, BOOL, es.ScalarType.HALF, es.ScalarType.BFLOAT16):
        for sizes in ((), (3,), (2, 3), (1, 2, 3), (1, 2, 4, 4)):
            b.tensor(sizes, dtype)
            b.tensor(tuple(size + 3 for size in sizes), dtype, dynamic=True)
    for number in (-2, -1, 0, 1, 2, 3):
        b.int(number)
    for number in (-1.0, 0.0, 0.5, 2.0):
        b.value(es.Double(double_val=number))
    b.bool(True), b.bool(False), b.none()
    first = len(b.plan.values) - 13
    for count in range(5):
        b.value(es.IntList(items=[first + 3 + (count > 2)] * count))
    b.add(0, 0, 1)
    return b.serialize()


def weights() -> bytes:
    """A .ptd with a tensor and a blob."""
    layout = es.TensorLayout(scalar_type=FLOAT, sizes=[2, 3], dim_order=[0, 1])
    entries = {"w": es.NamedBlob(bytes(24), layout=layout), "blob": es.NamedBlob(b"12345")}
    return es.serialize_ptd(es.PtdFile(entries))


PROGRAMS: dict[str, Callable[[], bytes]] = {
    "add": addition,
    "counter": counter,
    "loop": lambda: loop(20),
    "everything": everything,
    "branch": branch,
    "unbound": unbound,
    "external": external,
    "probe": probe,
    "inline": inline,
    "dtypes": dtypes,
}


def write(folder: Path) -> None:
    """Write the programs and the `.ptd` into folders of their own."""
    for kind, files in (("pte", PROGRAMS), ("ptd", {"weights": weights})):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for name, make in files.items():
            (folder / kind / f"{name}.{kind}").write_bytes(make())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
