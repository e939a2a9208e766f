# SPDX-License-Identifier: BSD-3-Clause
"""Which method and which calls: by names and numbers, several calls in a file, what is refused."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from etx_schema import EtxError
from etx_schema.calls import Place, choose_method, read_arrays, read_calls

X, Y, N = Place("x", (2, 3)), Place("y", (None, 3)), Place("n", None)
TWO, FOUR = np.ones((2, 3)), np.ones((4, 3))


def shapes(
    folder: Path, files: Sequence[Mapping[str, Any] | Any], *places: Place, **options: Any
) -> list[dict[int, Any]]:
    """Return the calls with arrays as their shapes."""
    paths = []
    for number, file in enumerate(files):
        path = folder / f"{number}.np{'z' if isinstance(file, dict) else 'y'}"
        if isinstance(file, dict):
            np.savez(path, **file)
        else:
            np.save(path, file)
        paths.append(str(path))
    calls = read_calls(paths, places, **options)
    return [
        {i: value.shape if isinstance(value, np.ndarray) else value for i, value in call.items()}
        for call in calls
    ]


CALLS: dict[str, tuple[Sequence[Any], tuple[Place, ...], list[dict[int, Any]]]] = {
    "by name, in any order": ([{"y": FOUR, "x": TWO}], (X, Y), [{0: (2, 3), 1: (4, 3)}]),
    "as savez numbers": ([{"arr_1": FOUR, "arr_0": TWO}], (X, Y), [{0: (2, 3), 1: (4, 3)}]),
    "what etx run wrote": ([{"output_0": TWO}], (X,), [{0: (2, 3)}]),
    "files in order": ([TWO, FOUR], (X, Y), [{0: (2, 3), 1: (4, 3)}]),
    "a file a call": ([{"x": TWO}, {"x": TWO}], (X,), [{0: (2, 3)}] * 2),
    "pieces along the first axis": ([{"x": FOUR}], (X,), [{0: (2, 3)}] * 2),
    "an axis more": ([{"x": np.ones((3, 2, 3))}], (X,), [{0: (2, 3)}] * 3),
    "a first axis that varies": ([{"y": FOUR}], (Y,), [{0: (4, 3)}]),
    "numbered calls": ([{"y.1": FOUR, "y.0": TWO}], (Y,), [{0: (2, 3)}, {0: (4, 3)}]),
    "arrays of several calls": ([{str(i): TWO for i in range(12)}], (X,), [{0: (2, 3)}] * 12),
    "numbers": ([{"x": TWO, "n": 3}], (X, N), [{0: (2, 3), 1: 3}]),
    "a number left out": ([{"x": TWO}], (X, N), [{0: (2, 3)}]),
    "numbers in order": ([{"arr_0": 5, "arr_1": TWO}], (N, X), [{0: 5, 1: (2, 3)}]),
    "numbers of calls": ([{"x": FOUR, "n": [1, 2]}], (X, N), [{0: (2, 3), 1: n} for n in (1, 2)]),
    "an input called 1": ([{"1": TWO}], (Place("1", (2, 3)),), [{0: (2, 3)}]),
    "a shape that does not fit": ([{"x": np.ones((3, 3))}], (X,), [{0: (3, 3)}]),
}


@pytest.mark.parametrize("name", CALLS)
def test_files_are_calls(name: str, tmp_path: Path) -> None:
    files, places, expected = CALLS[name]
    assert shapes(tmp_path, files, *places) == expected


def test_an_axis_of_calls_of_single_numbers_gives_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "0.npz", x=np.arange(3, dtype=np.float32))
    calls = read_calls([str(tmp_path / "0.npz")], [Place("x", ())])
    assert [(type(call[0]), call[0].shape) for call in calls] == [(np.ndarray, ())] * 3


def test_what_is_given_otherwise_is_left_out(tmp_path: Path) -> None:
    assert shapes(tmp_path, [TWO], X, Y, given=[1]) == [{0: (2, 3)}]
    assert shapes(tmp_path, [{"x": TWO, "y": TWO}], X, Y, given=[1]) == [{0: (2, 3)}]


WRONG: dict[str, tuple[Sequence[Any], tuple[Place, ...], str]] = {
    "another name": ([{"x": TWO, "mask": TWO}], (X, Y), "0.npz: the array 'mask' is of no input"),
    "only others": ([{"image": TWO}], (X,), "'image' is of no input; there are x"),
    "one missing": ([{"x": TWO}], (X, Y), "0.npz: no array of input y; it has 'x'"),
    "too many": ([TWO, TWO, TWO], (X, Y), r"expected 2 arrays a call \(x, y\), 3 were given"),
    "no inputs": ([TWO], (), "expected 0 arrays a call"),
    "an empty file": ([{}], (X,), "no array of input x; it has none"),
    "calls of one": ([{"x": FOUR, "y": TWO}], (X, Y), "numbers of calls: x 2, y 1"),
    "a hole": ([{"y.0": TWO, "y.2": TWO}], (Y,), r"expected 'y', or 'y.0', .*found 'y.0', 'y.2'"),
    "both": ([{"y.0": TWO, "y": TWO}], (Y,), "found 'y.0' and 'y'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_call_is_refused_by_key(name: str, tmp_path: Path) -> None:
    files, places, message = WRONG[name]
    with pytest.raises(EtxError, match=message):
        shapes(tmp_path, files, *places)


def test_shapes_are_refused_where_they_must_fit(tmp_path: Path) -> None:
    message = r"array 'x': its shape is \[3, 3\]; expected \[2, 3\], a multiple of 2"
    with pytest.raises(EtxError, match=message):
        shapes(tmp_path, [{"x": np.ones((3, 3))}], X, must_fit=True)


def member(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def saved(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize("cut", [*range(0, 128, 3), 130])
def test_damaged_arrays_are_errors(cut: int, tmp_path: Path) -> None:
    for name, content in (("x.npy", saved(TWO)), ("x.npz", member("x.npy", saved(TWO)))):
        path = tmp_path / name
        path.write_bytes(content[:cut])
        with pytest.raises(EtxError, match=rf"{name} cannot be read as a \.npy or \.npz"):
            read_arrays(str(path))


@pytest.mark.parametrize(
    "content",
    [
        saved(np.array([{}], object)),
        b"",
        b"\x93NUMPY\x09\x00",
        b"PK\x05\x06" + bytes(9),
        member("x.npy", b"no array"),
        member("x.npy", saved(TWO).replace(b"(2, 3)", b"(2,1e")),
    ],
)
def test_other_files_are_errors(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(EtxError, match=r"x\.npz"):
        read_calls([str(path)], [X])
    with pytest.raises(EtxError, match=r"none\.npz: no such file"):
        read_arrays(str(tmp_path / "none.npz"))
    with pytest.raises(EtxError, match="cannot be read"):
        read_arrays(str(tmp_path))


def test_the_method_is_forward_or_the_only_one() -> None:
    assert choose_method(["a", "forward"], None) == "forward"
    assert choose_method({"encode": 1}, None) == "encode"
    assert choose_method(["a", "b"], "b") == "b"
    with pytest.raises(EtxError, match=r"m\.pte has no method 'forward' \(it has: a, b\); name"):
        choose_method(["b", "a"], None, "m.pte")
    with pytest.raises(EtxError, match=r"no method 'c' \(it has: a\)"):
        choose_method(["a"], "c")
    with pytest.raises(EtxError, match="it has: none"):
        choose_method([], None)


def test_numbers_of_another_machine_are_read(tmp_path: Path) -> None:
    x = np.arange(3, dtype=">f4")
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x, y=np.asfortranarray(np.ones((2, 3), ">i8")))
    for file in ("x.npy", "x.npz"):
        for array in read_arrays(str(tmp_path / file)).values():
            assert array.dtype.isnative
    assert read_arrays(str(tmp_path / "x.npy"))[""].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.array([b"a"]), np.zeros(1, "M8[s]"), np.zeros(1, "f4,i4")]
)
def test_what_is_no_number_is_refused(array: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(EtxError, match=r"x\.npy cannot be read as .*, not one of numbers"):
        read_arrays(str(tmp_path / "x.npy"))
