# SPDX-License-Identifier: BSD-3-Clause
"""Each kind of failure: its class, code, and that it says what, where and what was expected."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from etx_runtime import (
    ExecutionError,
    InputError,
    LoadError,
    MetadataError,
    Method,
    PluginError,
    Runtime,
    RuntimeFailure,
)
from programs import FLOAT, Builder, addition, counter, loop

X = np.zeros((2, 3), np.float32)
ONE = np.ones(1, np.float32)
ORIGINS = [{"module": "net.add", "source": "net.py:7"}, {"module": "net.mul", "source": "net.py:8"}]


@dataclass
class Kind:
    """A failing action, and what its error must hold."""

    action: Callable[[], object]
    cls: type[RuntimeFailure]
    code: int
    texts: tuple[str, ...]
    fields: dict[str, Any] = field(default_factory=dict)


def load(data: bytes, **options: Any) -> Method:
    return Runtime.get().load_program(data, **options).load_method("forward")


def named(memory: str = "planned") -> Method:
    b = Builder()
    x, y, out = (b.tensor((2, 3), memory=memory) for _ in range(3))
    b.input(x), b.input(y)
    b.add(x, y, out)
    b.output(out)
    b.constraints(["left", "right"], [[None, None]] * 2)
    return load(b.serialize())


def with_origins(b: Builder) -> bytes:
    document = {"forward": {"instructions": ORIGINS}}
    b.named["etx/debug"] = es.NamedBlob(json.dumps(document).encode())
    return b.serialize()


def missing_kernels() -> object:
    b = Builder()
    x = b.input(b.tensor((1,)))
    b.call("aten::nothing.out", x, x)
    b.call("aten::never", x, x)
    return load(with_origins(b))


def wrong_argument() -> object:
    b = Builder()
    x = b.input(b.tensor((1,)))
    b.add(x, x, x)
    b.call("aten::add.out", x, x, x, x, x)
    return load(with_origins(b))


def delegate(name: str, blob: bytes) -> bytes:
    b = Builder()
    x, out = b.input(b.tensor((2,))), b.tensor((2,))
    place = es.BackendDelegateDataReference(location=es.DataLocation.SEGMENT, index=0)
    b.plan.delegates.append(es.BackendDelegate(id=name, processed=place, compile_specs=[]))
    b.delegates.append(blob)
    b.instruction(es.DelegateCall(delegate_index=0, args=[x, out]))
    b.output(out)
    return b.serialize()


def external() -> bytes:
    b = Builder()
    b.output(b.tensor((2,), memory="external", name="layer.w"))
    return b.serialize()


def other_weights() -> bytes:
    layout = es.TensorLayout(scalar_type=FLOAT, sizes=[3], dim_order=[0])
    return es.serialize_ptd(es.PtdFile({"layer.w": es.NamedBlob(bytes(12), layout=layout)}))


def refused() -> object:
    b = Builder()
    x = b.input(b.tensor((2,)))
    b.add(x, x, b.tensor((2,)))
    b.add(x, b.tensor((3,)), b.tensor((2,)))
    return load(with_origins(b)).execute([np.ones(2, np.float32)])


def in_python() -> object:
    def op(*args: object) -> None:
        raise OSError("disk full")

    b = Builder()
    x = b.input(b.tensor((1,)))
    b.add(x, x, b.tensor((1,)))
    b.call("my::op", x, x)
    etx_runtime.register_kernel("my::op", op)
    try:
        return load(with_origins(b)).execute([ONE])
    finally:
        etx_runtime.unregister("my::op")


def endless() -> object:
    method = load(loop(2**62))
    method.set_instruction_budget(1000)
    return method.execute([])


def freed() -> object:
    b = Builder()
    x = b.input(b.tensor((1,)))
    b.free(x)
    b.add(x, x, b.tensor((1,)))
    return load(with_origins(b)).execute([ONE])


def specialised(value: object) -> object:
    b = Builder()
    b.input(b.int(3))
    b.constraints(["steps"], [[]])
    return load(b.serialize()).execute([value])


def dynamic(size: int) -> object:
    b = Builder()
    b.output(b.input(b.tensor((8,), dynamic=True)))
    b.constraints(["tokens"], [[{"symbol": "s0", "min": 2, "max": 8, "divisor": 1}]])
    return load(b.serialize()).execute([np.zeros(size, np.float32)])


def newer() -> bytes:
    pte = Builder().pte()
    pte.program.version = 9
    return es.serialize_pte(pte)


def corrupt_table() -> bytes:
    b = Builder()
    index = b.input(b.tensor((2,)))
    b.plan.values[index].val.allocation_info.memory_id = 7  # type: ignore[union-attr]
    return b.serialize()


def bad_spec() -> object:
    b = Builder()
    b.plan.container_meta_type = es.ContainerMetadata(encoded_inp_str="[2, {}]")
    return etx_runtime.load(b.serialize())()


def nothing(path: str) -> Callable[[], object]:
    return lambda: Runtime.get().load_program(path)


KINDS = {
    "no file": Kind(nothing("none.pte"), LoadError, 0x22, ("none.pte", "No such file")),
    "no program": Kind(lambda: load(bytes(200)), LoadError, 0x23, ("ET12", "byte 4")),
    "cut": Kind(lambda: load(addition()[:400]), LoadError, 0x23, ("corrupt", "byte")),
    "newer": Kind(lambda: load(newer()), LoadError, 0x10, ("newer version", "upgrade")),
    "corrupt table": Kind(lambda: load(corrupt_table()), LoadError, 0x23, ("forward", "byte")),
    "source": Kind(
        lambda: Runtime.get().load_program(3),  # type: ignore[arg-type]
        *(LoadError, 0x23, ("path, bytes", "got int")),
    ),
    "no method": Kind(
        lambda: Runtime.get().load_program(addition()).load_method("other"),
        *(LoadError, 0x12, ("'other'", "'forward'")),
    ),
    "missing kernels": Kind(
        missing_kernels,
        *(LoadError, 0x14),
        (
            *("2 operators: aten::nothing.out, aten::never", "etx-kernels-portable"),
            *("nothing.out is from net.add, net.py:7", "never is from net.mul, net.py:8"),
        ),
        {"name": "aten::nothing.out", "instruction": 0},
    ),
    "wrong argument": Kind(
        wrong_argument,
        *(LoadError, 0x23, ("aten::add.out", "instruction 1", "index 2", "net.mul, net.py:8")),
        {"name": "aten::add.out", "instruction": 1, "index": 2},
    ),
    "no backend": Kind(
        lambda: load(delegate("Elsewhere", b"x")),
        *(LoadError, 0x20, ("Elsewhere: no backend of this name",), {"name": "Elsewhere"}),
    ),
    "refusing backend": Kind(
        lambda: load(delegate("AddByte", b"")),
        *(LoadError, 0x30, ("AddByte: the blob is empty",), {"name": "AddByte"}),
    ),
    "no weights": Kind(
        lambda: load(external()), LoadError, 0x24, ("layer.w", ".ptd file that was not given")
    ),
    "other weights": Kind(
        lambda: load(external(), data_paths=[other_weights()]),
        *(LoadError, 0x24, ("layer.w", "differs in dtype, shape or layout")),
    ),
    "no weights file": Kind(
        lambda: load(external(), data_paths=["none.ptd"]),
        *(LoadError, 0x22, ("none.ptd", "No such file")),
    ),
    "bad container": Kind(bad_spec, LoadError, 0x23, ("container spec", "protocol 2")),
    "no plugin": Kind(
        lambda: Runtime.get().load_plugin("none.so"), PluginError, 0x20, ("none.so", "cannot open")
    ),
    "no function": Kind(
        lambda: etx_runtime.register_kernel("my::op", 3),  # type: ignore[arg-type]
        *(PluginError, 0x12, ("my::op", "needs a function")),
    ),
    "count": Kind(
        lambda: named().execute([X]), InputError, 0x12, ("forward takes 2 inputs, got 1",)
    ),
    "dtype": Kind(
        lambda: named().execute([X, X.astype(np.int64)]),
        *(InputError, 0x12, ("input 1 ('right')", "expected float32[2, 3]", "got int64[2, 3]")),
        {"index": 1},
    ),
    "shape": Kind(
        lambda: named().execute([X[:1], X]),
        *(InputError, 0x10, ("input 0 ('left')", "expected float32[2, 3]", "got float32[1, 3]")),
        {"index": 0},
    ),
    "rank": Kind(
        lambda: named("unbound").execute([X, X[0]]),
        *(InputError, 0x10, ("input 1 ('right')", "float32[2, 3]", "got float32[3]")),
        {"index": 1},
    ),
    "object": Kind(
        lambda: named().execute([X, object()]),
        *(InputError, 0x12, ("input 1 ('right')", "float32[2, 3]", "DLPack", "got object")),
        {"index": 1},
    ),
    "number": Kind(
        lambda: load(addition((), dtype=es.ScalarType.LONG)).execute([0.5, 1]),
        *(InputError, 0x12, ("input 0", "int64[]", "got float"), {"index": 0}),
    ),
    "large number": Kind(
        lambda: load(addition((), dtype=es.ScalarType.LONG)).execute([2**70, 1]),
        *(InputError, 0x12, ("input 0", str(2**70), "too large for int64[]"), {"index": 0}),
    ),
    "unknown dtype": Kind(
        lambda: named().execute([X, np.array(["a"])]),
        *(InputError, 0x10, ("input 1 ('right')", "<U1"), {"index": 1}),
    ),
    "other value": Kind(
        lambda: specialised(4),
        *(InputError, 0x12, ("input 0 ('steps')", "expected 3, got 4", "at export"), {"index": 0}),
    ),
    "no number": Kind(
        lambda: specialised([4]), InputError, 0x12, ("input 0 ('steps')", "got list"), {"index": 0}
    ),
    "bound": Kind(
        lambda: dynamic(1),
        *(InputError, 0x12, ("input 0 ('tokens')", "dimension 0 is 1", "at least 2", "(1,)")),
        {"index": 0},
    ),
    "largest": Kind(
        lambda: dynamic(9),
        *(InputError, 0x12, ("input 0 ('tokens')", "dimension 0 is 9", "at most 8", "(9,)")),
        {"index": 0},
    ),
    "no sequence": Kind(
        lambda: named().execute(3),  # type: ignore[arg-type]
        *(InputError, 0x12, ("must be a list or tuple",)),
    ),
    "keyword": Kind(
        lambda: etx_runtime.load(addition())(X, z=X), InputError, 0x12, ("unknown argument 'z'",)
    ),
    "kernel": Kind(
        refused,
        *(ExecutionError, 0x12),
        (
            *("aten::add.out failed at instruction 1", "self and other differ in shape"),
            *("float32[2], float32[3], 1, float32[2]", "from net.mul, net.py:8"),
        ),
        {"name": "aten::add.out", "instruction": 1},
    ),
    "Python kernel": Kind(
        in_python,
        *(ExecutionError, 0x01, ("my::op failed", "net.mul, net.py:8", "OSError: disk full")),
        {"name": "my::op", "instruction": 1},
    ),
    "freed": Kind(
        freed,
        *(ExecutionError, 0x02, ("aten::add.out", "was freed", "net.mul, net.py:8")),
        {"instruction": 1},
    ),
    "budget": Kind(endless, ExecutionError, 0x25, ("budget is used up",), {"instruction": 4}),
    "buffer": Kind(
        lambda: load(counter()).get_attribute("other"), MetadataError, 0x20, ("buffer 'other'",)
    ),
    "state": Kind(
        lambda: load(counter()).set_state({"count": X}),
        *(InputError, 0x12, ("buffer 'count'", "float32[1]", "got float32[2, 3]")),
    ),
    "method's metadata": Kind(
        lambda: Runtime.get().load_program(addition()).method_meta("other"),
        *(MetadataError, 0x20, ("'other'", "forward")),
    ),
    "input's metadata": Kind(
        lambda: load(addition()).metadata.input_tensor_meta(5), MetadataError, 0x12, ("no such",)
    ),
    "input's value": Kind(
        lambda: load(addition()).input_value(0), MetadataError, 0x12, ("input 0", "not a number")
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_failure(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    kind = KINDS[name]
    with pytest.raises(es.EtxError) as caught:
        kind.action()
    error = caught.value
    assert type(error) is kind.cls
    assert error.code == kind.code
    for text in kind.texts:
        assert text in str(error)
    for key, value in kind.fields.items():
        assert getattr(error, key) == value
    assert "\n" not in str(error)
