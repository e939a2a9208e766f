# SPDX-License-Identifier: BSD-3-Clause
"""Read one field of many tables of a flatbuffer at once, as columns of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from etx_schema import Blob, ProgramError

Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]


class Columns:
    """The bytes of one flatbuffer; whatever they hold, what is read is a column or an error.

    Places count from the beginning of `data`, and 0 is none. The vectors and texts read may add up
    to the bytes there are: a small file cannot ask for unbounded work.
    """

    def __init__(self, data: Blob) -> None:
        view = memoryview(data).cast("B")
        self.view = view
        self.size = len(view)
        self.bytes = np.frombuffer(view, np.uint8)
        self.items = {
            width: np.frombuffer(view, f"<u{width}", self.size // width) for width in (2, 4)
        }
        self.budget = self.size

    def unsigned(self, places: Places, width: int) -> Numbers:
        """Return numbers of 1, 2, 4 or 8 bytes; raise ProgramError where they do not lie inside."""
        bad = (places < 0) | (places > self.size - width)
        if width > 1:
            bad |= places % min(width, 4) != 0
        if bad.any():
            place = int(places[int(np.argmax(bad))])
            raise ProgramError(
                f"a number of {width} bytes does not lie at a multiple of {min(width, 4)} in the "
                f"{self.size} bytes there are",
                place,
            )
        if width == 1:
            return self.bytes[places]
        if width < 8:
            return self.items[width][places // width]
        low, high = self.items[4][places // 4], self.items[4][places // 4 + 1]
        return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)

    def slots(self, tables: Places, count: int) -> list[Places]:
        """Return where the first `count` fields of each table lie, 0 where one is absent."""
        distance = self.unsigned(tables, 4).astype(np.int32)
        vtables, which = np.unique(tables - distance, return_inverse=True)
        sizes = self.unsigned(vtables, 2)
        bad = (sizes < 4) | (sizes % 2 != 0) | (vtables + sizes > self.size)
        if bad.any():
            index = int(np.argmax(bad))
            raise ProgramError(f"a vtable has size {sizes[index]}", int(vtables[index]))
        found = []
        for slot in range(count):
            has = sizes >= 6 + 2 * slot
            offsets = np.zeros(len(vtables), np.int64)
            offsets[has] = self.unsigned(vtables[has] + 4 + 2 * slot, 2)
            of_tables = offsets[which]
            found.append(np.where(of_tables == 0, 0, tables + of_tables))
        return found

    def numbers(self, places: Places, kind: str, absent: int) -> Numbers:
        """Return fields of a NumPy type, `absent` where a place is 0."""
        dtype = np.dtype(kind)
        found = np.full(len(places), absent, dtype)
        has = places != 0
        found[has] = self.unsigned(places[has], dtype.itemsize).view(dtype)
        return found

    def targets(self, places: Places) -> Places:
        """Return where offsets lead, 0 where there is none."""
        found = np.zeros(len(places), np.int64)
        has = places != 0
        found[has] = places[has] + self.unsigned(places[has], 4)
        return found

    def spend(self, size: int, place: int) -> None:
        """Count bytes as read."""
        self.budget -= size
        if self.budget < 0:
            raise ProgramError("too many offsets lead to the same bytes", place)

    def vector(self, place: int) -> Places:
        """Return where the tables of a vector lie; nothing without one."""
        if place == 0:
            return np.zeros(0, np.int64)
        count = int(self.unsigned(np.array([place]), 4)[0])
        if count > (self.size - place - 4) // 4:
            raise ProgramError(
                f"a vector of {count} tables does not fit into the {self.size} bytes there are",
                place,
            )
        self.spend(4 * count, place)
        return self.targets(place + 4 + 4 * np.arange(count, dtype=np.int64))

    def blob(self, place: int) -> bytes:
        """Return the bytes of a text or of a vector of them."""
        size = int(self.unsigned(np.array([place]), 4)[0])
        if size > self.size - place - 4:
            raise ProgramError(
                f"{size} bytes do not fit into the {self.size} bytes there are", place
            )
        self.spend(size, place)
        return bytes(self.view[place + 4 : place + 4 + size])

    def text(self, place: int) -> str:
        """Return a text."""
        try:
            return self.blob(place).decode()
        except UnicodeDecodeError as error:
            raise ProgramError(f"a text is not UTF-8: {error}", place) from None

    def texts(self, places: Places) -> list[str | None]:
        """Return texts, each read once, None where there is none."""
        different, which = np.unique(places, return_inverse=True)
        found = [self.text(place) if place else None for place in different.tolist()]
        return [found[index] for index in which.tolist()]

    def blobs(self, places: Places) -> list[bytes]:
        """Return bytes, each read once, none where there is nothing."""
        different, which = np.unique(places, return_inverse=True)
        found = [self.blob(place) if place else b"" for place in different.tolist()]
        return [found[index] for index in which.tolist()]
