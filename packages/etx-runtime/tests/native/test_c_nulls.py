# SPDX-License-Identifier: BSD-3-Clause
"""Each function of etx.h with each pointer null in turn, and structs whose members are garbage."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import etx_runtime
import pytest
from conftest import INCLUDE
from programs import Builder

Function = ctypes.CFUNCTYPE(None)
NOTHING = Function(lambda: None)
LIBRARY = Path(etx_runtime.__file__).parent / "lib" / "libetx_runtime.so"
OK, INVALID_ARGUMENT = 0, 0x12
MAY_BE_NULL = {
    ("etx_program_load_file", "options"),
    ("etx_program_load_memory", "release"),
    ("etx_program_load_memory", "context"),
    ("etx_program_load_memory", "options"),
    ("etx_program_load_fd", "options"),
    ("etx_program_named_data", "data"),
    ("etx_program_method_counts", "num_inputs"),
    ("etx_program_method_counts", "num_outputs"),
    ("etx_program_method_counts", "num_buffers"),
    ("etx_method_load_with", "options"),
    ("etx_method_set_tensor", "strides"),
    ("etx_set_log_sink", "sink"),
    ("etx_set_log_sink", "user"),
}
"""What etx.h says may be null, or nothing but passed on."""


class LoadOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("verify", ctypes.c_int32),
        ("use_mmap", ctypes.c_int32),
        ("data_paths", ctypes.POINTER(ctypes.c_char_p)),
        ("num_data_paths", ctypes.c_size_t),
    ]


def functions() -> dict[str, list[tuple[str, str]]]:
    """Return type and name of each argument of the functions that have a status, as declared."""
    header = re.sub(r"//.*|/\*.*?\*/", "", (INCLUDE / "etx" / "etx.h").read_text())
    found = {}
    for name, text in re.findall(r"ETX_API etx_status (\w+)\((.*?)\);", header, re.DOTALL):
        flat = re.sub(r"void \(\*(\w+)\)\([^)]*\)", r"void* \1", " ".join(text.split()))
        arguments = [argument.strip() for argument in flat.split(",")]
        pairs = [re.fullmatch(r"(.*?)(\w+)", argument) for argument in arguments]
        found[name] = [(pair[1].strip(), pair[2]) for pair in pairs if pair is not None]
    return found


@pytest.fixture(scope="module")
def library(plugin: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(LIBRARY))
    loaded.etx_last_error.restype = ctypes.c_char_p
    loaded.etx_program_free.argtypes = loaded.etx_method_free.argtypes = [ctypes.c_void_p]
    loaded.etx_method_free.restype = loaded.etx_program_free.restype = None
    loaded.etx_set_log_level(3)
    assert loaded.etx_load_plugin(str(plugin).encode()) == OK
    return loaded


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A program with an input, a buffer, named data."""
    b = Builder()
    x, out = b.input(b.tensor((4,))), b.tensor((4,))
    state = b.tensor((4,), memory="caller", name="open")
    b.add(x, state, out)
    b.output(out)
    path = tmp_path / "model.pte"
    path.write_bytes(b.serialize())
    return path


class Arguments:
    """Arguments that fit each function, of one program and one method."""

    def __init__(self, library: ctypes.CDLL, path: Path) -> None:
        self.kept: list[Any] = [path.read_bytes(), bytes(16)]
        self.path = str(path).encode()
        program, method = ctypes.c_void_p(), ctypes.c_void_p()
        assert library.etx_program_load_file(self.path, None, ctypes.byref(program)) == OK
        assert library.etx_method_load(program, b"forward", ctypes.byref(method)) == OK
        self.program, self.method = program, method

    def struct(self, size: int) -> Any:
        memory = (ctypes.c_size_t * 32)(size)
        self.kept.append(memory)
        return ctypes.cast(memory, ctypes.c_void_p)

    def fit(self, function: str, kind: str, name: str) -> Any:
        if kind.endswith("**") or (kind == "size_t*" and name != "num_arenas"):
            return self.struct(0)
        if name in ("release", "sink"):
            return NOTHING
        if name == "program":
            return self.program
        if name in ("method", "name", "key", "path") and kind == "const char*":
            return {"path": self.path, "key": b"key"}.get(
                name, b"open" if function.endswith("_buffer") else b"forward"
            )
        if name == "method":
            return self.method
        if "*" not in kind:
            return {"size": 16, "rank": 1, "dtype": 6}.get(name, 0)
        if name == "data" and function == "etx_program_load_memory":
            return self.kept[0]
        if name in ("data", "sizes"):
            return (ctypes.c_int32 * 4)(4)
        sizes = {"options": ctypes.sizeof(LoadOptions), "plugin": 0}
        return self.struct(sizes.get(name, 200))


def calls() -> Iterator[tuple[str, str]]:
    """Each function with each of its pointers."""
    for function, arguments in functions().items():
        for kind, name in arguments:
            if "*" in kind:
                yield function, name


@pytest.mark.parametrize(("function", "null"), list(calls()))
def test_each_pointer_is_null_once(
    library: ctypes.CDLL, place: Path, function: str, null: str
) -> None:
    arguments = Arguments(library, place)
    given = [
        None if name == null else arguments.fit(function, kind, name)
        for kind, name in functions()[function]
    ]
    status = getattr(library, function)(*given)
    if (function, null) not in MAY_BE_NULL:
        assert status == INVALID_ARGUMENT, function
        assert b"null" in library.etx_last_error()
    library.etx_set_log_sink(None, None)
    library.etx_method_free(arguments.method)
    library.etx_program_free(arguments.program)


def test_all_functions_are_swept() -> None:
    assert len(functions()) > 20
    assert {function for function, _ in calls()} == {*functions()}
    assert {*calls()} >= MAY_BE_NULL


@pytest.mark.parametrize("size", [0, 1, 8, 11, 12, 20, 1 << 40, (1 << 64) - 1])
def test_structs_of_any_size(library: ctypes.CDLL, place: Path, size: int) -> None:
    """What is too small is refused; of what is larger than the library knows, the rest stays."""
    arguments = Arguments(library, place)
    for function, first in (
        ("etx_program_input_info", (arguments.program, b"forward", 0)),
        ("etx_method_get_output", (arguments.method, 0)),
        ("etx_method_get_buffer", (arguments.method, b"open")),
    ):
        memory = (ctypes.c_ubyte * 256)(*[0xAB] * 256)
        ctypes.memmove(memory, size.to_bytes(8, "little"), 8)
        status = getattr(library, function)(*first, memory)
        assert status == (OK if size >= 12 else INVALID_ARGUMENT), function
        used = min(max(size, 8), 200)
        assert bytes(memory[used:]) == b"\xab" * (256 - used)
    options = LoadOptions(struct_size=size, verify=1, use_mmap=1)
    program = ctypes.c_void_p()
    status = library.etx_program_load_file(
        arguments.path, ctypes.byref(options), ctypes.byref(program)
    )
    assert status == (OK if size >= ctypes.sizeof(LoadOptions) else INVALID_ARGUMENT)
    assert bool(program) == (status == OK)


SHAPES = [
    (6, 1, [4], None, OK),
    (6, 1, [4], [1], OK),
    (6, 1, [4], [-1], OK),
    (6, 1, [4], [0], OK),
    (6, 0, [4], None, None),
    (6, 17, [4] * 17, None, None),
    (6, (1 << 64) - 1, [4], None, None),
    (6, 1, [-1], None, None),
    (6, 1, [-(1 << 31)], None, None),
    (6, 2, [(1 << 31) - 1] * 2, None, None),
    (6, 16, [(1 << 31) - 1] * 16, None, None),
    (6, 2, [4, 0], None, None),
    (-1, 1, [4], None, None),
    (23, 1, [4], None, None),
    (1000, 1, [4], None, None),
    (-(1 << 31), 1, [4], None, None),
]


@pytest.mark.parametrize(("dtype", "rank", "sizes", "strides", "status"), SHAPES)
def test_garbage_shapes(
    library: ctypes.CDLL,
    place: Path,
    dtype: int,
    rank: int,
    sizes: list[int],
    strides: list[int] | None,
    status: int | None,
) -> None:
    arguments = Arguments(library, place)
    data = (ctypes.c_float * 9)()
    got = library.etx_method_set_tensor(
        arguments.method,
        ctypes.c_size_t(0),
        ctypes.byref(data, 16),
        dtype,
        ctypes.c_size_t(rank),
        (ctypes.c_int32 * len(sizes))(*sizes),
        None if strides is None else (ctypes.c_int64 * len(strides))(*strides),
    )
    assert (got == OK) == (status == OK), library.etx_last_error()
    assert got == OK or library.etx_last_error()
    for index in (1, (1 << 64) - 1):
        assert library.etx_method_set_int(arguments.method, ctypes.c_size_t(index), 1) != OK
