# SPDX-License-Identifier: BSD-3-Clause
"""Whether an image fits into a board's memories, and which tensors it is full of."""

from __future__ import annotations

from collections.abc import Iterator

from etx_schema.errors import EtxError
from etx_schema.inspect.memory import memory_of
from etx_schema.inspect.memory_report import allocation_text, step_text
from etx_schema.pte_reader import read_pte

from etx_backend_arm.firmware.boards import Board
from etx_backend_arm.firmware.image import Image

SHOWN = 5
"""Tensors of an arena that are named, the largest."""


def require_room(image: Image, board: Board) -> None:
    """Errors: EtxError where a memory of the board has less, with what the peak is made of."""
    sizes = {board.bank(0): image.beside_arenas()}
    arenas: dict[object, set[int]] = {}
    for block in image.blocks():
        if block.memory_id:
            bank = board.bank(block.memory_id)
            sizes[bank] = sizes.get(bank, 0) + block.size
            arenas.setdefault(bank, set()).add(block.memory_id)
    for bank, size in sizes.items():
        name, memory = bank
        if size > memory.size:
            files = ", ".join(map(str, image.files()))
            peak = "".join(_peak(image, arenas.get(bank, set())))
            raise EtxError(
                f"{files} {'need' if len(image.files()) > 1 else 'needs'} {size:,} bytes of "
                f"{name.upper()} and {board.name} has {memory.size:,}, "
                f"{size - memory.size:,} too few:\n{image.table()}{peak}".rstrip()
            )


def _peak(image: Image, arenas: set[int]) -> Iterator[str]:
    """Yield the fullest step of each arena, and the largest tensors that are live then."""
    for model in image.models:
        methods = memory_of(read_pte(model.file))
        method = next(each for each in methods if each.method == model.method)
        for arena in method.arenas:
            if arena.memory_id not in arenas or not arena.largest_live_set:
                continue
            there = arena.at(arena.fullest_step)
            yield f"planned arena {arena.memory_id} is fullest at "
            yield f"{step_text(method, arena.fullest_step)}, with {len(there)} tensors:\n"
            for size, allocation in there[:SHOWN]:
                yield f"{size:>13,} bytes  {allocation_text(allocation, size)}\n"
