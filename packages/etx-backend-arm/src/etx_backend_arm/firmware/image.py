# SPDX-License-Identifier: BSD-3-Clause
"""What an image is made from: methods of files, and the memory that they take together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from etx_schema.errors import EtxError
from etx_schema.inspect.memory import memory_of
from etx_schema.pte import PteFile

from etx_backend_arm.firmware.floats import FloatCall, float_table
from etx_backend_arm.firmware.memory import MemoryNeeds, rows_of
from etx_backend_arm.firmware.targets import Target


@dataclass(frozen=True)
class Case:
    """A call of the model and what it returns: (index, array) of each tensor."""

    inputs: Sequence[tuple[int, np.ndarray]] = ()
    outputs: Sequence[tuple[int, np.ndarray]] = ()


@dataclass(frozen=True)
class Model:
    """A method of a file, and the test of it. `name` is that of its header and namespace.

    `state` are the tensors that a call leaves for the next one: (arena, begin, name).
    """

    name: str
    file: Path
    method: str
    needs: MemoryNeeds
    case: Case = Case()
    floats: tuple[FloatCall, ...] = ()
    state: frozenset[tuple[int, int, str]] = frozenset()


@dataclass(frozen=True)
class Block:
    """Bytes that models use in turn: an arena by its number, or temporary memory, 0."""

    name: str
    memory_id: int
    size: int
    models: tuple[str, ...]

    def __str__(self) -> str:
        return f"planned arena {self.memory_id}" if self.memory_id else "temporary memory"


@dataclass(frozen=True)
class Image:
    """The models of an image and what they take together, in bytes."""

    models: tuple[Model, ...]
    is_shared: bool = False
    stack: int = 0
    stack_is: str = ""
    is_read: bool = False
    """Whether the files are read into RAM when the image starts."""

    def blocks(self) -> list[Block]:
        """Return the arrays of RAM but the methods' arenas.

        With `is_shared`, models share what no state lies in.
        """
        owners: dict[tuple[int, str], list[tuple[Model, int]]] = {}
        for model in self.models:
            sizes = model.needs.arenas | ({} if model.needs.places else {0: model.needs.temporary})
            for memory_id, size in sizes.items():
                owner = self._owner(model, memory_id)
                if size:
                    owners.setdefault((memory_id, owner), []).append((model, size))
        return [
            Block(
                f"{owner}{f'arena_{memory_id}' if memory_id else 'temporary'}",
                memory_id,
                max(size for _, size in users),
                tuple(model.name for model, _ in users),
            )
            for (memory_id, owner), users in sorted(owners.items(), key=lambda item: item[0][0])
        ]

    def _owner(self, model: Model, memory_id: int) -> str:
        """Return the beginning of an arena's name: that of its model, or none where all use it."""
        has_state = any(memory_id == each for each, _, _ in model.state)
        return "" if self.is_shared and not has_state else f"{model.name}_"

    def files(self) -> list[Path]:
        """Return the files, each once."""
        return list(dict.fromkeys(model.file for model in self.models))

    def name_of(self, file: Path) -> str:
        """Return the name of a file: that of its first model."""
        return next(model.name for model in self.models if model.file == file)

    def beside_arenas(self) -> int:
        """Return the bytes of RAM that are not planned."""
        temporary = sum(block.size for block in self.blocks() if block.memory_id == 0)
        files = self.models_size() if self.is_read else 0
        return temporary + sum(model.needs.method for model in self.models) + self.stack + files

    def ram(self) -> int:
        """Return the bytes that are written at run time."""
        return self.beside_arenas() + sum(b.size for b in self.blocks() if b.memory_id)

    def models_size(self) -> int:
        """Return the bytes of the files."""
        return sum({model.file: model.needs.model for model in self.models}.values())

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "methods": [
                {
                    "name": m.name,
                    "file": str(m.file),
                    "method": m.method,
                    **m.needs.document(),
                    "float": [asdict(call) for call in m.floats],
                }
                for m in self.models
            ],
            "shared": {b.name: b.size for b in self.blocks() if len(b.models) > 1},
            "stack": self.stack,
            "stack_is": self.stack_is,
            "ram": self.ram(),
            "model": self.models_size(),
            "model_is_read": self.is_read,
        }

    def table(self) -> str:
        """Return it as text, a line each: of several models each one's, then the sum."""
        where = "in RAM, too" if self.is_read else "in flash"
        ends = [("stack", self.stack, self.stack_is), ("RAM", self.ram(), "")]
        if len(self.models) == 1:
            needs = self.models[0].needs
            rows = rows_of([*needs.rows(), *ends, (f"model, {where}", needs.model, "")])
            return rows + float_table(self.models[0].floats)
        text = ""
        for model in self.models:
            text += f"{model.name}: {model.method} of {model.file.name}\n"
            text += rows_of([*model.needs.rows(), (f"model, {where}", model.needs.model, "")])
            text += float_table(model.floats)
        shared = [
            (str(block), block.size, f"of {', '.join(block.models)} in turn")
            for block in self.blocks()
            if len(block.models) > 1
        ]
        last = (f"models, {where}", self.models_size(), "")
        return f"{text}together\n{rows_of([*shared, *ends, last])}"


@dataclass(frozen=True)
class Firmware:
    """What a firmware is written from."""

    name: str
    target: Target
    image: Image
    tolerance: float
    verification: str
    is_library: bool = False
    model_at: int | None = None

    def places(self) -> dict[Path, int]:
        """Return the address of each file that is not linked: in a row from `model_at`."""
        found: dict[Path, int] = {}
        if self.model_at is None:
            return found
        at = self.model_at
        for file in self.image.files():
            found[file] = at
            at = (at + file.stat().st_size + 15) // 16 * 16
        return found

    def loads(self, folder: str) -> list[str]:
        """Return the words that let QEMU put files of `folder` where they are expected."""
        words = []
        for file, at in self.places().items():
            path = f"{folder}/model/{self.image.name_of(file)}.pte"
            words += ["-device", f"loader,file={path},addr={at:#x},force-raw=on"]
        return words


def state_of(pte: PteFile, method: str) -> frozenset[tuple[int, int, str]]:
    """Return a method's state as a Model has it."""
    arenas = [a for each in memory_of(pte) if each.method == method for a in each.arenas]
    rows = [each for arena in arenas for each in arena.allocations if each.kind == "state"]
    return frozenset((each.memory_id, each.start, each.name) for each in rows)


def require_own_state(models: Sequence[Model]) -> None:
    """Errors: EtxError where methods of a file were exported with state in common."""
    for number, model in enumerate(models):
        for other in models[:number]:
            common = {name for *_, name in model.state & other.state if not name.startswith("%")}
            if common and model.file == other.file:
                raise EtxError(
                    f"{model.file}: {other.method} and {model.method} have state in common "
                    f"({', '.join(sorted(common))}), and firmware gives each method its own: "
                    "choose one by --method"
                )
