# SPDX-License-Identifier: BSD-3-Clause
"""Python keeps everything that it was ever given beyond each call that may free or reuse it.

Run by test_sanitized.py as well, where a read or write of freed memory ends the process.
"""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from etx_runtime import ExecutionError, Method, Program, Runtime
from programs import FLOAT, Builder

N = 1000
NAMES = ["planned", "given", "open", "state", "constant", "external", "scratch", "out", "free"]
WRITTEN = ["scratch", "out", "free"]
FILES = Path("model.pte"), Path("weights.ptd")


def filled(value: float) -> Any:
    return np.full(N, value, np.float32)


class Keeper:
    """Keeps what kernels and backends are given, and writes their outputs."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.fails = False

    def kernel(self, *args: Any) -> None:
        self.keep([*args[0], *args[1:]])

    def keep(self, args: list[Any]) -> None:
        self.kept |= dict(zip(NAMES, args, strict=True))
        for name in WRITTEN:
            self.kept[name][:] = 7
        if self.fails:
            raise ValueError("as it was told")

    def init(self, blob: bytes, specs: etx_runtime.CompileSpecs) -> object:
        handle = np.frombuffer(blob, np.uint8)
        self.kept |= {"blob": blob, "spec": specs["key"], "named": specs.named_data("named")}
        self.kept |= {"handle": handle}
        return handle

    def execute(self, handle: object, args: list[Any]) -> None:
        assert handle is self.kept["handle"]
        self.keep(args)


def build(source: str) -> tuple[bytes, bytes]:
    """A program that hands one tensor of each kind to Python, and its weights."""
    b = Builder()
    tensors = {
        "planned": b.input(b.tensor((N,))),
        "given": b.input(b.tensor((N,), memory="unbound")),
        "open": b.tensor((N,), memory="caller", name="open"),
        "state": b.tensor((N,), data=filled(4).tobytes(), name="state"),
        "constant": b.tensor((N,), memory="constant", data=filled(5).tobytes()),
        "external": b.tensor((N,), memory="external", name="weight"),
        "scratch": b.tensor((N,)),
        "out": b.tensor((N,)),
        "free": b.tensor((N,), memory="unbound"),
    }
    args = [tensors[name] for name in NAMES]
    if source == "kernel":
        first = b.value(es.TensorList(items=args[:4]))
        b.call("my::keep.out", first, *args[4:], *(tensors[name] for name in WRITTEN))
    else:
        processed = es.BackendDelegateDataReference(location=es.DataLocation.SEGMENT, index=0)
        specs = [es.CompileSpec(key="key", value=b"s" * N)]
        delegate = es.BackendDelegate(id="Keeper", processed=processed, compile_specs=specs)
        b.plan.delegates.append(delegate)
        b.delegates.append(b"b" * N)
        b.named["named"] = es.NamedBlob(b"n" * N)
        b.instruction(es.DelegateCall(delegate_index=0, args=args))
    b.output(tensors["out"], tensors["free"], tensors["open"], tensors["planned"])
    layout = es.TensorLayout(scalar_type=FLOAT, sizes=[N], dim_order=[0])
    weight = es.NamedBlob(filled(6).tobytes(), layout=layout)
    return b.serialize(), es.serialize_ptd(es.PtdFile({"weight": weight}))


class Scene:
    """A loaded method that executed once, and all that Python got of it."""

    program: Program
    method: Method

    def __init__(self, source: str, how: str) -> None:
        self.keeper = Keeper()
        self.register()
        contents = build(source)
        for path, content in zip(FILES, contents, strict=True):
            path.write_bytes(content)
        data, weights = contents if how == "bytes" else FILES
        self.load = lambda: Runtime.get().load_program(data, data_paths=[weights])
        self.program = self.load()
        self.method = self.program.load_method("forward")
        self.method.set_state({"open": filled(3)})
        self.inputs = [filled(1), filled(2)]
        self.outputs = self.method.execute(self.inputs, borrow=True)

    def register(self) -> None:
        etx_runtime.register_kernel("my::keep.out", self.keeper.kernel)
        etx_runtime.register_backend("Keeper", self.keeper)

    def read(self) -> dict[str, bytes]:
        """Read every view, and write to those that may be written to what they hold."""
        views = self.keeper.kept | {f"output {i}": out for i, out in enumerate(self.outputs)}
        contents = {name: bytes(view) for name, view in views.items()}
        for view in views.values():
            if isinstance(view, np.ndarray) and view.flags.writeable:
                view[:] = view.copy()
        return contents


def bind(scene: Scene) -> None:
    scene.method.bind_state({"open": filled(0)})


def bind_and_execute(scene: Scene) -> None:
    for value in range(3):
        scene.method.bind_state({"open": filled(value)})
        gc.collect()
    kept = dict(scene.keeper.kept)
    scene.method.execute(scene.inputs)
    scene.keeper.kept = {**scene.keeper.kept, "open": kept["open"]}


def set_state(scene: Scene) -> None:
    scene.method.set_state({"open": filled(3), "state": filled(4)})


def bind_what_was_kept(scene: Scene) -> None:
    scene.method.bind_state({"open": filled(9)})
    scene.method.set_state({"open": scene.keeper.kept["open"]})
    assert scene.method.get_state()["open"].tolist() == [3] * N


def reset_state(scene: Scene) -> None:
    scene.method.reset_state()
    scene.read()
    scene.method.execute(scene.inputs)


def drop_all(scene: Scene) -> None:
    for name in ("method", "program", "load"):
        vars(scene).pop(name, None)
    gc.collect()


def drop_program(scene: Scene) -> None:
    del scene.program
    gc.collect()
    scene.method.execute(scene.inputs)


def execute(scene: Scene) -> None:
    for _ in range(3):
        scene.method.execute([filled(1), filled(2)])


def raise_in_execution(scene: Scene) -> None:
    scene.keeper.fails = True
    with pytest.raises(ExecutionError, match="as it was told"):
        scene.method.execute(scene.inputs)


def reload(scene: Scene) -> None:
    scene.program = scene.load()
    scene.method = scene.program.load_method("forward")


def share(scene: Scene) -> None:
    other = scene.program.load_method("forward", share_state_with=[scene.method])
    other.set_state({"open": filled(3)})
    del scene.method
    gc.collect()
    other.execute(scene.inputs)


def register_anew(scene: Scene) -> None:
    scene.register()
    scene.method.execute(scene.inputs)


def unregister(scene: Scene) -> None:
    for name in ("my::keep.out", "Keeper"):
        while etx_runtime.unregister(name):
            pass
    scene.method.execute(scene.inputs)
    drop_all(scene)


def end_of_thread(scene: Scene) -> None:
    thread = threading.Thread(target=reload, args=[scene])
    thread.start()
    thread.join()
    thread = threading.Thread(target=drop_all, args=[scene])
    thread.start()
    thread.join()


def profile_and_time(scene: Scene) -> None:
    scene.method.profile(scene.inputs)
    scene.method.time_executions(scene.inputs, 3)


def fork(scene: Scene) -> None:
    child = os.fork()
    if child == 0:
        before = scene.read()
        drop_all(scene)
        os._exit(0 if scene.read() == before else 1)
    assert os.waitpid(child, 0)[1] == 0


EVENTS: list[Callable[[Scene], None]] = [
    bind,
    bind_and_execute,
    set_state,
    bind_what_was_kept,
    reset_state,
    drop_all,
    drop_program,
    execute,
    raise_in_execution,
    reload,
    share,
    register_anew,
    unregister,
    end_of_thread,
    profile_and_time,
    fork,
]


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder, and nothing registered afterwards."""
    monkeypatch.chdir(tmp_path)
    yield
    for name in ("my::keep.out", "my::op.out", "Keeper", "First", "Second"):
        while etx_runtime.unregister(name):
            pass


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")
@pytest.mark.parametrize("how", ["path", "bytes"])
@pytest.mark.parametrize("source", ["kernel", "backend"])
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_views_outlive(
    runtime: Runtime, event: Callable[[Scene], None], source: str, how: str
) -> None:
    scene = Scene(source, how)
    before = scene.read()
    assert {*NAMES} < {*before}
    assert before["open"] == filled(3).tobytes()
    assert before["external"] == filled(6).tobytes()
    event(scene)
    assert scene.read() == before
    drop_all(scene)
    assert scene.read() == before


def test_what_was_bound_goes_with_its_last_view(runtime: Runtime) -> None:
    scene = Scene("kernel", "bytes")
    first, second = filled(1), filled(2)
    alive = [weakref.ref(first), weakref.ref(second)]
    scene.method.bind_state({"open": first})
    scene.method.execute(scene.inputs)
    view = scene.keeper.kept["open"]
    scene.method.bind_state({"open": second})
    scene.method.execute(scene.inputs)
    del first, second
    assert all(reference() is not None for reference in alive)
    assert view.tolist() == [1] * N
    del view
    assert alive[0]() is None
    scene.keeper.kept.clear()
    assert alive[1]() is not None
    drop_all(scene)
    assert alive[1]() is None


def test_views_are_no_way_around_what_is_constant(runtime: Runtime) -> None:
    scene = Scene("kernel", "path")
    for view in [scene.keeper.kept[name] for name in ("constant", "external", "planned")]:
        with pytest.raises(ValueError, match="read-only"):
            view[:] = 0
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            view.flags.writeable = True
