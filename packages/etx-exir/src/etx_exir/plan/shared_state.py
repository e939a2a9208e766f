# SPDX-License-Identifier: BSD-3-Clause
"""State that several methods share: the same arena and the same offsets in each of them."""

from __future__ import annotations

from collections.abc import Iterable

from etx_exir.plan.linear_ir import Listing, Storage
from etx_exir.plan.options import SHARED_STATE


def place_shared_state(listings: Iterable[Listing], alignment: int = 16) -> None:
    """Give the state of all `listings` fixed places, equal names the same one."""
    places: dict[str, Storage] = {}
    end = 0
    shared = [(listing, _state_of(listing)) for listing in listings]
    for _, storages in shared:
        for storage in storages:
            first = places.setdefault(storage.name, storage)
            if first is storage:
                storage.offset = end
                end = -(-(end + storage.nbytes) // alignment) * alignment
            storage.memory_id, storage.offset = SHARED_STATE, first.offset
    for listing, _ in shared:
        listing.arena_sizes[SHARED_STATE] = end


def _state_of(listing: Listing) -> list[Storage]:
    return [listing.places[index].storage for index in listing.state]
