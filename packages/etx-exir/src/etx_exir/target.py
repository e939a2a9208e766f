# SPDX-License-Identifier: BSD-3-Clause
"""Does a program only use what its target has? All that is missing is reported at once."""

from __future__ import annotations

from collections.abc import Mapping

from etx_schema import PteFile

from etx_exir.plan.listing import Listing


def check_target(pte: PteFile, listings: Mapping[str, Listing], target: str) -> None:
    """Raise with every operator, dtype and backend of `pte` that `target` lacks."""
