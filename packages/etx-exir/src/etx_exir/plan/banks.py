# SPDX-License-Identifier: BSD-3-Clause
"""The memories of a device, and which tensors must lie in which of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from etx_schema.sizes import parse_size

from etx_exir.errors import ConfigError
from etx_exir.plan.tensors import PlannedTensor


@dataclass(frozen=True)
class Bank:
    """A memory that the planner may fill: at most `size` bytes of arena `mem_id`.

    `size` None means as much as is needed. `alignment` None means that of the planner.
    """

    name: str
    size: int | None
    mem_id: int
    alignment: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("size", self.size or 0), ("mem_id", self.mem_id)):
            if not isinstance(value, int):
                raise ConfigError(f"bank {self.name!r}: {name}={value!r}; expected an integer")
        if self.mem_id < 1:
            raise ConfigError(
                f"bank {self.name!r}: expected a mem_id of 1 or more, got {self.mem_id}"
            )
        if self.size is not None and self.size < 1:
            raise ConfigError(
                f"bank {self.name!r}: expected a size of 1 byte or more, got {self.size}"
            )
        if self.alignment is not None:
            check_alignment(self.alignment, f"bank {self.name!r}")


@dataclass(frozen=True)
class Pin:
    """Tensors that must lie in `bank`: those that match all that is given.

    `name`, `op` and `module` are patterns such as ``aten::convolution*``, `kind` is ``input``,
    ``output``, ``state`` or ``intermediate``, `when` is a function of the tensor.
    """

    bank: str
    name: str | None = None
    op: str | None = None
    module: str | None = None
    kind: str | None = None
    when: Callable[[PlannedTensor], bool] | None = None

    def __post_init__(self) -> None:
        if all(v is None for v in (self.name, self.op, self.module, self.kind, self.when)):
            raise ConfigError(
                f"a pin to bank {self.bank!r} says nothing of the tensors it is for; give name=,"
                " op=, module=, kind= or when="
            )
        if self.kind not in (None, "input", "output", "state", "intermediate"):
            raise ConfigError(
                f"a pin to bank {self.bank!r}: kind={self.kind!r}; expected 'input', 'output',"
                " 'state' or 'intermediate'"
            )

    def matches(self, tensor: PlannedTensor) -> bool:
        """Tell whether `tensor` must lie in the bank."""
        patterns = ((self.name, tensor.name), (self.op, tensor.op), (self.module, tensor.module))
        return (
            all(pattern is None or fnmatchcase(text, pattern) for pattern, text in patterns)
            and self.kind in (None, tensor.kind)
            and (self.when is None or bool(self.when(tensor)))
        )


class TargetMemoryMap:
    """Banks in order of preference, the fastest first, and pins, of which the first match wins.

    Tensors fill the first bank; those of the least use are spilled to the next when it is full.
    """

    def __init__(self, banks: Sequence[Bank], pins: Sequence[Pin] = ()) -> None:
        self.banks, self.pins = tuple(banks), tuple(pins)
        if not self.banks:
            raise ConfigError("a memory map needs at least one bank")
        for i, bank in enumerate(self.banks):
            for other in self.banks[:i]:
                if bank.name == other.name or bank.mem_id == other.mem_id:
                    raise ConfigError(
                        f"a memory map has {other} and {bank}; names and ids must be unique"
                    )
        for pin in self.pins:
            self.bank(pin.bank)

    @classmethod
    def load(cls, path: str | Path) -> TargetMemoryMap:
        """Read a JSON file: ``{"banks": [{"name": …}], "pins": [{"bank": …}]}``, fields as here.

        A size may be ``"96K"``. A file of a board for `etx firmware` is read too: banks with an
        `origin` and without a `mem_id` are not the planner's.
        """
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"cannot read the memory map {path}: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(f"the memory map {path} is not JSON: {error}") from error
        try:
            document = dict(document)
            document.pop("machine", None)
            banks = [_bank(row) for row in document.pop("banks", ()) if _is_planned(row)]
            pins = [Pin(**row) for row in document.pop("pins", ())]
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"the memory map {path}: {error}; expected an object with 'banks', rows of name,"
                " size (bytes or null), mem_id and alignment, and 'pins', rows of bank, name, op,"
                " module and kind"
            ) from error
        if document:
            raise ConfigError(f"the memory map {path}: unknown keys {', '.join(sorted(document))}")
        return cls(banks, pins)

    @classmethod
    def parse(cls, text: str) -> TargetMemoryMap:
        """Read ``sram:256K,dram``: banks from memory id 1 on, those without a size without end."""
        rows = [part.partition(":") for part in text.split(",")]
        try:
            banks = [
                Bank(name.strip(), parse_size(size) if size else None, mem_id)
                for mem_id, (name, _, size) in enumerate(rows, 1)
            ]
        except ValueError as error:
            raise ConfigError(f"memories {text!r}: {error}") from error
        return cls(banks)

    def mem_ids(self) -> list[int]:
        """Return the ids of the banks, in order of preference."""
        return [bank.mem_id for bank in self.banks]

    def bank(self, name: str) -> Bank:
        """Return the bank of that name."""
        for bank in self.banks:
            if bank.name == name:
                return bank
        known = ", ".join(bank.name for bank in self.banks)
        raise ConfigError(f"no bank {name!r} in the memory map; banks: {known}")


def _is_planned(row: dict[str, Any]) -> bool:
    return "mem_id" in row or "origin" not in row


def _bank(row: dict[str, Any]) -> Bank:
    fields = {name: value for name, value in row.items() if name != "origin"}
    if isinstance(fields.get("size"), str):
        fields["size"] = parse_size(fields["size"])
    return Bank(**fields)


def check_alignment(alignment: int, where: str) -> None:
    """Refuse what is not a power of two."""
    if alignment < 1 or alignment & (alignment - 1):
        raise ConfigError(f"{where}: alignment {alignment}; expected a power of two")
