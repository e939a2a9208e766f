# SPDX-License-Identifier: BSD-3-Clause
"""Say why tensors do not fit: where, how many bytes are missing, and what takes them."""

from __future__ import annotations

from collections.abc import Sequence

from etx_exir.errors import PlanError
from etx_exir.ir.provenance import module_path, source_line
from etx_exir.plan.banks import Bank, TargetMemoryMap
from etx_exir.plan.blocks import align
from etx_exir.plan.linear_ir import Listing, Storage
from etx_exir.plan.tensors import by_storage

SHOWN = 6


def shortage(
    listing: Listing,
    bank: Bank,
    memory_map: TargetMemoryMap | None,
    asked: Sequence[tuple[Storage, int]],
) -> PlanError:
    """Return the error for `asked`, storages with their moments, that `bank` cannot hold.

    With `memory_map`, all its banks are full and `bank` is the last; without, `asked` is pinned.
    """
    assert bank.size is not None
    alignment = bank.alignment or 16
    moment, alive = _fullest(asked)
    needed = sum(align(storage.nbytes, alignment) for storage in alive)
    missing = needed - bank.size
    what = "tensors"
    if memory_map is None:
        what = "tensors pinned there"
    elif len(memory_map.banks) > 1:
        what = "tensors that found no room in the banks before"
    lines = [f"method {listing.name!r}: bank {bank.name!r} (id {bank.mem_id}) is too small."]
    if missing > 0:
        lines.append(
            f"{_where(listing, moment)}, {what} take {needed:,} of {bank.size:,} bytes:"
            f" {missing:,} bytes are missing."
        )
    else:
        lines.append(
            f"At most {needed:,} of its {bank.size:,} bytes are live at once ("
            f"{_where(listing, moment)}), but no arrangement was found that leaves no gaps."
        )
    tensors = by_storage(listing)
    alive.sort(key=lambda storage: -storage.nbytes)
    lines.append("The largest there:")
    lines += [f"  {tensors[storage][0]}" for storage in alive[:SHOWN]]
    if len(alive) > SHOWN:
        lines.append(f"  and {len(alive) - SHOWN} smaller ones")
    advice = "unpin some of them, or give the bank more bytes"
    if memory_map is not None:
        advice = f"give a bank more bytes ({_banks(memory_map)}), or make the model smaller"
    lines.append(f"What to do: {advice}.")
    return PlanError("\n".join(lines))


def _fullest(asked: Sequence[tuple[Storage, int]]) -> tuple[int, list[Storage]]:
    last = max((mask.bit_length() for _, mask in asked), default=0)
    best, most, alive = 0, -1, list[Storage]()
    for moment in range(last):
        there = [storage for storage, mask in asked if mask >> moment & 1]
        if (total := sum(storage.nbytes for storage in there)) > most:
            best, most, alive = moment, total, there
    return best, alive


def _where(listing: Listing, moment: int) -> str:
    if moment == 0:
        return "Before the first instruction"
    steps = listing.steps
    if moment > len(steps):
        return "After the last instruction"
    step = steps[moment - 1]
    number = sum(not each.dead for each in steps[: moment - 1])
    node = step.source
    origin = (module_path(node), source_line(node)) if node is not None else ()
    return f"At instruction {number} ({', '.join(part for part in (step.op, *origin) if part)})"


def _banks(memory_map: TargetMemoryMap) -> str:
    return ", ".join(
        f"{bank.name}: {'no limit' if bank.size is None else f'{bank.size:,} bytes'}"
        for bank in memory_map.banks
    )
