# SPDX-License-Identifier: BSD-3-Clause
"""Files of the model set say of nearly every instruction which module and line it comes from."""

from __future__ import annotations

import json

from conftest import Workshop
from etx_schema import read_pte
from etx_schema.strip import strip_file
from names import ROWS


def test_instructions_have_module_line_and_handle(model: str, workshop: Workshop) -> None:
    pte = read_pte(workshop.folder / model / f"{ROWS[model].file}.pte")
    document = json.loads(bytes(pte.named_data["etx/debug"].data))
    for plan in pte.program.execution_plan:
        rows = document[plan.name]["instructions"]
        assert len(rows) == len(plan.chains[0].instructions)
        known = [r for r in rows if r and "module" in r and r.get("source") and r.get("handles")]
        unknown = [f"#{i} {r and r.get('op')}" for i, r in enumerate(rows) if r not in known]
        assert len(known) > 0.95 * len(rows), f"{len(known)} of {len(rows)}, not {unknown}"


def test_stripped_file_has_the_same_tables(model: str, workshop: Workshop) -> None:
    path = workshop.folder / model / f"{ROWS[model].file}.pte"
    small = path.with_suffix(".small.pte")
    strip_file(path, small)
    before, after = read_pte(path), read_pte(small)
    assert set(before.named_data) - set(after.named_data) == {"etx/debug"}
    assert after.program == before.program
    assert after.constants == before.constants
    assert small.stat().st_size < path.stat().st_size
