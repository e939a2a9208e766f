# SPDX-License-Identifier: BSD-3-Clause
"""The value table of a method; equal constants that no step writes share a slot."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from etx_schema import (
    Bool,
    BoolList,
    Double,
    DoubleList,
    EValue,
    Int,
    IntList,
    Null,
    OptionalTensorList,
    String,
    Tensor,
    TensorList,
)

Member = (
    Null
    | Int
    | Bool
    | Double
    | Tensor
    | String
    | IntList
    | DoubleList
    | BoolList
    | TensorList
    | OptionalTensorList
)


class Values:
    """Values in order of their indices."""

    def __init__(self) -> None:
        self.items: list[EValue] = []
        self._shared: dict[Hashable, int] = {}

    def add(self, member: Member) -> int:
        """Append a value of its own and return its index."""
        self.items.append(EValue(val=member))
        return len(self.items) - 1

    def _once(self, key: Hashable, member: Member) -> int:
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self.add(member)
        return found

    def null(self) -> int:
        """Return the index of None."""
        return self._once("null", Null())

    def integer(self, value: int) -> int:
        """Return the index of a constant integer."""
        return self._once(("int", int(value)), Int(int_val=int(value)))

    def boolean(self, value: bool) -> int:
        """Return the index of a constant truth value."""
        return self._once(("bool", bool(value)), Bool(bool_val=bool(value)))

    def double(self, value: float) -> int:
        """Return the index of a constant number."""
        number = float(value)
        return self._once(("double", number.hex()), Double(double_val=number))

    def string(self, value: str) -> int:
        """Return the index of a constant string."""
        return self._once(("str", value), String(string_val=value))

    def int_list(self, items: Sequence[int]) -> int:
        """Return the index of a list of integers, given by the indices of its items."""
        return self._once(("ints", tuple(items)), IntList(items=list(items)))

    def double_list(self, items: Sequence[float]) -> int:
        """Return the index of a list of numbers."""
        numbers = [float(item) for item in items]
        key = ("doubles", tuple(number.hex() for number in numbers))
        return self._once(key, DoubleList(items=numbers))

    def bool_list(self, items: Sequence[bool]) -> int:
        """Return the index of a list of truth values."""
        flags = [bool(item) for item in items]
        return self._once(("bools", tuple(flags)), BoolList(items=flags))

    def tensor_list(self, items: Sequence[int]) -> int:
        """Return the index of a list of tensors, given by index."""
        return self._once(("tensors", tuple(items)), TensorList(items=list(items)))

    def optional_tensor_list(self, items: Sequence[int]) -> int:
        """Return the index of a list of tensors or None, given by index."""
        return self._once(("optionals", tuple(items)), OptionalTensorList(items=list(items)))
