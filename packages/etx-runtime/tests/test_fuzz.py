# SPDX-License-Identifier: BSD-3-Clause
"""Broken files: an error or the program's work, never a crash. A crash kills the child process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import etx_schema as es
from programs import Builder, addition, counter, loop

CHILD = """
import random, sys
import numpy as np
import etx_runtime
from pathlib import Path

runtime = etx_runtime.Runtime.get()
runtime.load_plugin(sys.argv[1])
etx_runtime.set_num_threads(1)
def attempt(data):
    try:
        program = runtime.load_program(data)
        for name in program.method_names:
            method = program.load_method(name)
            method.set_instruction_budget(1000)
            meta = method.metadata
            inputs = []
            for i in range(meta.num_inputs()):
                if meta.input_tag(i) == 1:
                    info = meta.input_tensor_meta(i)
                    if info.nbytes() > 1 << 20:
                        return "big"
                    inputs.append(np.ones(info.sizes(), info.dtype_name()))
                else:
                    inputs.append(method.input_value(i))
            for _ in range(2):
                method.execute(inputs)
        return "ran"
    except (etx_runtime.RuntimeFailure, TypeError, UnicodeDecodeError) as error:
        return "refused"

counts = {}
generator = random.Random(int(sys.argv[2]))
for path in sys.argv[4:]:
    seed = Path(path).read_bytes()
    for end in range(0, len(seed), 64):
        assert attempt(seed[:end]) == "refused", end
    for _ in range(int(sys.argv[3])):
        data = bytearray(seed)
        for _ in range(generator.choice((1, 1, 1, 2, 4))):
            at = generator.randrange(len(data))
            flipped = data[at] ^ 1 << generator.randrange(8)
            data[at] = generator.choice((0, 1, 2, 127, 128, 255, flipped))
        result = attempt(bytes(data))
        counts[result] = counts.get(result, 0) + 1
print(counts)
assert counts.get("refused", 0) > 0 and counts.get("ran", 0) > 0
"""


def everything() -> bytes:
    """All kinds of values and instructions in one method."""
    b = Builder()
    x = b.input(b.tensor((2, 3), dynamic=True))
    state = b.tensor((2, 3), data=bytes(24), name="state")
    constant = b.tensor((2, 3), memory="constant", data=bytes(range(24)))
    out, result = b.tensor((2, 3), dynamic=True), b.tensor((2, 3), dynamic=True)
    flat = b.tensor((6,), memory="unbound", dynamic=True)
    n, i, done = b.int(0), b.int(0), b.bool(False)
    tensors = b.value(es.TensorList(items=[constant, state]))
    b.value(es.OptionalTensorList(items=[x, -1]))
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
    b.plan.delegates.append(
        es.BackendDelegate(
            id="AddByte",
            processed=es.BackendDelegateDataReference(location=es.DataLocation.SEGMENT, index=0),
            compile_specs=[es.CompileSpec(key="bias", value=b"12")],
        )
    )
    b.delegates.append(b"\x03\x04")
    b.named["bias"] = es.NamedBlob(b"\x05")
    b.instruction(es.DelegateCall(delegate_index=0, args=[constant, b.tensor((2, 3))]))
    return b.serialize()


def test_mutated_files(plugin: Path, tmp_path: Path) -> None:
    seeds = {"add": addition(), "counter": counter(), "loop": loop(20), "all": everything()}
    paths = []
    for name, data in seeds.items():
        path = tmp_path / f"{name}.pte"
        path.write_bytes(data)
        paths.append(str(path))
    rounds = os.environ.get("ETX_FUZZ_ROUNDS", "4000")
    command = [sys.executable, "-c", CHILD, str(plugin), "7", rounds, *paths]
    environment = {**os.environ, "ETX_PLUGINS": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
