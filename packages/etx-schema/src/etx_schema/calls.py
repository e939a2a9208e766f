# SPDX-License-Identifier: BSD-3-Clause
"""What a command calls: which method, and with which arrays of files.

An `.npz` holds an array for each input by its name, or all by `arr_0`, `arr_1` (what
`numpy.savez(a, b)` writes), `input_0`, `output_0` or `0`. Several calls are an axis more in front,
pieces along a first axis of fixed size, arrays `NAME.0`, `NAME.1`, or numbered arrays beyond those
of one call. A `.npy` is an array without a name: the files' order is that of the inputs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etx_schema.errors import EtxError

if TYPE_CHECKING:
    from etx_schema.pte import PteFile

__all__ = ["Place", "choose_method", "method_names", "read_arrays", "read_calls"]

Array = Any
"""A NumPy array: only reading files needs NumPy, `etx-schema[arrays]`."""

RAW = "|V1"
NUMBERED = re.compile(r"(?:arr_|input_|output_)?(\d{1,9})")
OF_CALL = re.compile(r"(.+)\.(\d{1,9})")


@dataclass(frozen=True)
class Place:
    """An input or output: its name, empty for none, and sizes, None of what is not a tensor.

    A size is None where it varies. Errors name it as it is `shown`.
    """

    name: str
    sizes: tuple[int | None, ...] | None
    shown: str = ""


def choose_method(names: Collection[str], asked: str | None, file: str = "the program") -> str:
    """Return the method asked for, else `forward` or the only one. Errors: EtxError with names."""
    known = ", ".join(sorted(names)) or "none"
    if asked is not None:
        if asked not in names:
            raise EtxError(f"{file} has no method {asked!r} (it has: {known})")
        return asked
    if "forward" in names:
        return "forward"
    if len(names) != 1:
        raise EtxError(f"{file} has no method 'forward' (it has: {known}); name one with --method")
    return next(iter(names))


def method_names(pte: PteFile) -> list[str]:
    """Return the names of a program's methods."""
    return [plan.name or "" for plan in pte.program.execution_plan]


def read_arrays(path: str) -> dict[str, Array]:
    """Return the arrays of an `.npz` by key; that of a `.npy`, or a `.bin`'s bytes, has none.

    Raw bytes have the dtype V1; numbers have this machine's byte order. Errors: EtxError.
    """
    import numpy as np

    try:
        if Path(path).suffix == ".bin":
            return {"": np.fromfile(path, "V1")}
        with open(path, "rb") as file:
            content = np.load(file, allow_pickle=False)
            if isinstance(content, np.ndarray):
                return {"": _numbers(content)}
            arrays = {key: content[key] for key in content.files}
            for key, array in arrays.items():
                if not isinstance(array, np.ndarray):
                    raise ValueError(f"{key!r} in it is not an array")
            return {key: _numbers(array) for key, array in arrays.items()}
    except FileNotFoundError as error:
        raise EtxError(f"{path}: no such file") from error
    except Exception as error:  # NumPy's parsers raise what theirs raise
        reason = str(error) or type(error).__name__
        if "pickle" in reason:
            reason = "it is another file, or holds Python objects"
        kinds = "a .npy or .npz without pickled objects, or a raw .bin"
        raise EtxError(f"{path} cannot be read as {kinds}: {reason}") from error


def _numbers(array: Array) -> Array:
    """Return an array in this machine's byte order. Errors: ValueError for one of no numbers."""
    if array.dtype.kind in "SUMm" or array.dtype.names:
        raise ValueError(f"its dtype is {array.dtype}, not one of numbers")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def read_calls(
    paths: Sequence[str],
    places: Sequence[Place],
    given: Collection[int] = (),
    word: str = "input",
    must_fit: bool = False,
) -> list[dict[int, Any]]:
    """Return the calls that files hold, in turn: arrays by the index of their place.

    What is not a tensor may be missing, and is a number. Places that are `given` otherwise are
    left out. Errors: EtxError that names file and key; of arrays whose shape is not that of calls
    only with `must_fit`, since most callers say more of them.
    """
    reader = _Reader(places, given, word, must_fit)
    for path in paths:
        reader.add(path, read_arrays(path))
    return reader.end()


class _Reader:
    """Calls of one file after the other; arrays without names wait until a call is complete."""

    def __init__(
        self, places: Sequence[Place], given: Collection[int], word: str, must_fit: bool
    ) -> None:
        self.places, self.word, self.must_fit = places, word, must_fit
        self.open = [i for i in range(len(places)) if i not in given]
        self.tensors = [i for i in self.open if places[i].sizes is not None]
        self.names = {place.name: i for i, place in enumerate(places) if place.name}
        self.calls: list[dict[int, Any]] = []
        self.waiting: list[tuple[str, Array]] = []

    def add(self, path: str, arrays: Mapping[str, Array]) -> None:
        numbers = {key: int(match[1]) for key in arrays if (match := NUMBERED.fullmatch(key))}
        if not self.names.keys() & arrays.keys() and len(numbers) == len(arrays) != 0:
            ordered = sorted(arrays, key=lambda key: numbers[key])
            self.waiting += [(f"{path}, array {key!r}", arrays[key]) for key in ordered]
        elif arrays.keys() == {""}:
            self.waiting.append((path, arrays[""]))
        else:
            if self.waiting:
                self.calls += self._in_turn()
            self.calls += self._named(path, arrays)

    def end(self) -> list[dict[int, Any]]:
        return self.calls + (self._in_turn() if self.waiting else [])

    def _in_turn(self) -> list[dict[int, Any]]:
        """Return the calls of arrays without names: of all inputs, or of those that are tensors."""
        rows, self.waiting = self.waiting, []
        chosen = self.open if self._are_of_all(rows) else self.tensors
        if not chosen or len(rows) % len(chosen):
            raise EtxError(
                f"{rows[0][0]}: expected {len(chosen)} arrays a call ({self._listed(chosen)}), "
                f"{len(rows)} were given"
            )
        if len(rows) == len(chosen):
            pieces = {i: self._split(i, *row) for i, row in zip(chosen, rows, strict=True)}
            return self._calls(rows[0][0], pieces)
        turns = range(0, len(rows), len(chosen))
        return [
            {i: _one(self.places[i], rows[start + k][1]) for k, i in enumerate(chosen)}
            for start in turns
        ]

    def _are_of_all(self, rows: Sequence[tuple[str, Array]]) -> bool:
        count = len(self.open)
        if not count or len(rows) % count:
            return False
        is_number = [self.places[i].sizes is None for i in self.open]
        return all(array.ndim == 0 or not is_number[k % count] for k, (_, array) in enumerate(rows))

    def _named(self, path: str, arrays: Mapping[str, Array]) -> list[dict[int, Any]]:
        pieces: dict[int, list[Any]] = {}
        numbered: dict[int, dict[int, Any]] = {}
        for key, array in arrays.items():
            match = OF_CALL.fullmatch(key)
            if key in self.names:
                place = f"{path}, array {key!r}"
                pieces[self.names[key]] = self._split(self.names[key], place, array)
            elif match and match[1] in self.names:
                index = self.names[match[1]]
                numbered.setdefault(index, {})[int(match[2])] = _one(self.places[index], array)
            else:
                raise EtxError(
                    f"{path}: the array {key!r} is of no {self.word}; there are "
                    f"{self._listed(range(len(self.places))) or 'none'}"
                )
        for index, found in numbered.items():
            name = self.places[index].name
            if index in pieces or sorted(found) != list(range(len(found))):
                keys = ", ".join(f"'{name}.{call}'" for call in sorted(found))
                raise EtxError(
                    f"{path}: expected '{name}', or '{name}.0', '{name}.1', ...; found {keys}"
                    + f" and '{name}'" * (index in pieces)
                )
            pieces[index] = [found[call] for call in range(len(found))]
        missing = [i for i in self.tensors if i not in pieces]
        if missing:
            keys = ", ".join(map(repr, arrays))
            raise EtxError(
                f"{path}: no array of {self.word} {self._listed(missing)}; it has {keys or 'none'}"
            )
        return self._calls(path, {i: p for i, p in pieces.items() if i in self.open})

    def _calls(self, path: str, pieces: Mapping[int, list[Any]]) -> list[dict[int, Any]]:
        counts = {len(found) for found in pieces.values()}
        if len(counts) > 1:
            listed = ", ".join(f"{self.places[i].name or i} {len(p)}" for i, p in pieces.items())
            raise EtxError(f"{path}: of different numbers of calls: {listed}")
        return [{i: p[call] for i, p in pieces.items()} for call in range(max(counts, default=0))]

    def _split(self, index: int, where: str, array: Array) -> list[Any]:
        """Return what the calls get of an array; of a shape that does not fit it is one call."""
        place = self.places[index]
        sizes = () if place.sizes is None else place.sizes
        if array.dtype.str == RAW:
            return [array]
        if array.ndim == len(sizes) + 1:
            return [_one(place, array[i, ...]) for i in range(len(array))]
        size = sizes[0] if sizes else None
        if not size or array.ndim != len(sizes) or array.shape[0] % size or not array.shape[0]:
            if self.must_fit and (array.ndim != len(sizes) or size):
                raise EtxError(
                    f"{where}: its shape is {list(array.shape)}; expected {list(sizes)}, a "
                    f"multiple of {size} along the first axis, or an axis more for the calls"
                )
            return [_one(place, array)]
        return [array[start : start + size] for start in range(0, array.shape[0], size)]

    def _listed(self, indices: Collection[int]) -> str:
        return ", ".join(
            self.places[i].shown or self.places[i].name or f"{self.word} {i}" for i in indices
        )


def _one(place: Place, array: Array) -> Any:
    """Return what one call gets: an array, or the number that it is."""
    return array.item() if place.sizes is None and array.ndim == 0 else array
