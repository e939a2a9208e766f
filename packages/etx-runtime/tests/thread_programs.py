# SPDX-License-Identifier: BSD-3-Clause
"""The program that the threads of stress_threads share, and what its methods are to return.

`python thread_programs.py FOLDER` writes `threads.pte`, `threads.ptd` and `threads.cases`.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import etx_schema as es
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from programs import Builder

Array = np.ndarray
Sample = tuple[Array, Array]
RANDOM = np.random.default_rng(0)
SCALE, BIAS = 3.0, 0.5
EXTERNAL = np.arange(32, dtype=np.float32)


def random(*sizes: int) -> Array:
    return RANDOM.standard_normal(sizes).astype(np.float32) / 4


def constant(b: Builder, value: Array) -> int:
    return b.tensor(value.shape, memory="constant", data=value.tobytes())


def ints(b: Builder, *numbers: int) -> int:
    return b.value(es.IntList(items=[b.int(number) for number in numbers]))


def delegate(b: Builder, args: list[int], *, racy: bool = False) -> None:
    """A call of the backend PoolScale: x * SCALE + BIAS, on all threads."""
    b.delegates.append(struct.pack("<f", SCALE))
    b.named["bias"] = es.NamedBlob(struct.pack("<f", BIAS))
    place = es.BackendDelegateDataReference(
        location=es.DataLocation.SEGMENT, index=len(b.delegates) - 1
    )
    specs = [es.CompileSpec(key="racy", value=b"1")] if racy else []
    b.plan.delegates.append(
        es.BackendDelegate(id="PoolScale", processed=place, compile_specs=specs)
    )
    b.instruction(es.DelegateCall(delegate_index=len(b.plan.delegates) - 1, args=args))


def squares(b: Builder) -> list[Sample]:
    """x * x + x, for vectors of any length."""
    x = b.input(b.tensor((3000,), dynamic=True))
    squared, out = (b.tensor((3000,), dynamic=True) for _ in range(2))
    b.call("aten::square.out", x, squared, squared)
    b.add(squared, x, out)
    b.output(out)
    inputs = [random(size) for size in (1, 63, 64, 65, 1000, 3000)]
    return [(x, x * x + x) for x in inputs]


def delegated(b: Builder, *, racy: bool = False) -> list[Sample]:
    x = b.input(b.tensor((2000,)))
    out = b.tensor((2000,))
    delegate(b, [x, out], racy=racy)
    b.output(out)
    x = random(2000)
    return [(x, x * np.float32(SCALE) + np.float32(BIAS))]


def external(b: Builder) -> list[Sample]:
    """x + a weight of the .ptd, in the caller's memory."""
    x = b.input(b.tensor((32,), memory="unbound"))
    out = b.tensor((32,), memory="unbound")
    b.add(x, b.tensor((32,), memory="external", name="weight"), out)
    b.output(out)
    return [(x, x + EXTERNAL) for x in (random(32), random(32))]


def count(b: Builder) -> list[Sample]:
    """A buffer that starts at 5 and grows by the input at each call."""
    x = b.input(b.tensor((1,)))
    state = b.tensor((1,), data=struct.pack("<f", 5), name="count")
    out = b.tensor((1,))
    b.add(state, x, out)
    b.call("aten::copy_", state, out, b.bool(False), state)
    b.output(out)
    return []


def endless(b: Builder) -> list[Sample]:
    """Counts until it is cancelled."""
    i = b.int(0)
    b.call("executorch_prim::add.Scalar", i, b.int(1), i)
    b.jump_false(b.bool(False), 0)
    b.output(i)
    return []


def missing(b: Builder) -> list[Sample]:
    """An operator without a kernel."""
    x = b.input(b.tensor((1,)))
    b.call("etx_test::missing", x, x)
    b.output(x)
    return []


def multilayer(b: Builder) -> list[Sample]:
    """softmax(relu(x @ a) @ b), for any number of rows."""
    first, second = random(128, 256), random(256, 40)
    x = b.input(b.tensor((48, 128), dynamic=True))
    hidden, active = (b.tensor((48, 256), dynamic=True) for _ in range(2))
    logits, out = (b.tensor((48, 40), dynamic=True) for _ in range(2))
    b.call("aten::mm.out", x, constant(b, first), hidden, hidden)
    b.call("aten::relu.out", hidden, active, active)
    b.call("aten::mm.out", active, constant(b, second), logits, logits)
    b.call("aten::_softmax.out", logits, b.int(1), b.bool(False), out, out)
    b.output(out)

    def expected(x: Array) -> Array:
        scores = np.exp(np.maximum(x @ first, 0) @ second)
        return scores / scores.sum(1, keepdims=True)

    return [(x, expected(x)) for x in (random(rows, 128) for rows in (1, 5, 48))]


def convolution(b: Builder) -> list[Sample]:
    """The mean over the image of a 3x3 convolution and a depthwise one."""
    dense, depthwise = random(24, 8, 3, 3), random(24, 1, 3, 3)
    x = b.input(b.tensor((1, 8, 26, 26)))
    between, after = b.tensor((1, 24, 24, 24)), b.tensor((1, 24, 22, 22))
    out = b.tensor((1, 24))

    def convolve(source: int, weight: Array, groups: int, target: int) -> None:
        ones, zeros = ints(b, 1, 1), ints(b, 0, 0)
        shape = (b.none(), ones, zeros, ones, b.bool(False), zeros, b.int(groups))
        b.call("aten::convolution.out", source, constant(b, weight), *shape, target, target)

    convolve(x, dense, 1, between)
    convolve(between, depthwise, 24, after)
    b.call("aten::mean.out", after, ints(b, 2, 3), b.bool(False), b.none(), out, out)
    b.output(out)

    def expected(x: Array) -> Array:
        windows = sliding_window_view(x, (3, 3), (2, 3))
        between = np.einsum("ncyxij,ocij->noyx", windows, dense)
        windows = sliding_window_view(between, (3, 3), (2, 3))
        return np.einsum("ncyxij,cij->ncyx", windows, depthwise[:, 0]).mean((2, 3))

    return [(x, expected(x)) for x in (random(1, 8, 26, 26) for _ in range(2))]


PLAIN = {"squares": squares, "delegated": delegated, "external": external}
SPECIAL = {"count": count, "endless": endless, "missing": missing}
PORTABLE = {"multilayer": multilayer, "convolution": convolution}


def pack(name: str, samples: list[Sample]) -> bytes:
    """Name and samples: each input's sizes and elements, and the output's elements."""
    parts = [struct.pack("<i", len(name)), name.encode(), struct.pack("<i", len(samples))]
    for x, y in samples:
        parts.append(struct.pack(f"<{x.ndim + 1}i", x.ndim, *x.shape))
        parts.append(x.tobytes())
        parts.append(struct.pack("<i", y.size) + np.ascontiguousarray(y, np.float32).tobytes())
    return b"".join(parts)


def write(folder: Path, *, portable: bool) -> None:
    """Write the files; with `portable` methods that need the portable kernels, too."""
    makers = {**PLAIN, **(PORTABLE if portable else {}), **SPECIAL}
    makers["racy"] = lambda b: (delegated(b, racy=True), [])[1]
    first, *others = (Builder(name) for name in makers)
    for other in others:
        for stored in ("constants", "mutable", "delegates", "named"):
            setattr(other, stored, getattr(first, stored))
    samples = {b.plan.name: makers[b.plan.name](b) for b in (first, *others)}
    cases = [pack(name, given) for name, given in samples.items() if given]
    (folder / "threads.pte").write_bytes(first.serialize(*others))
    (folder / "threads.cases").write_bytes(struct.pack("<i", len(cases)) + b"".join(cases))
    layout = es.TensorLayout(scalar_type=es.ScalarType.FLOAT, sizes=[32], dim_order=[0])
    blob = es.NamedBlob(EXTERNAL.tobytes(), layout=layout)
    es.write_ptd(es.PtdFile({"weight": blob}), folder / "threads.ptd")


if __name__ == "__main__":
    write(Path(sys.argv[1]), portable=True)
