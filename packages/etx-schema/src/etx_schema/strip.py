# SPDX-License-Identifier: BSD-3-Clause
"""Remove from a program what only people read: origins of instructions and stack traces."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from etx_schema._generated.program import DataSegment, Program
from etx_schema.errors import EtxError, ProgramError
from etx_schema.files import PathLike, load_bytes
from etx_schema.problem import is_for_people
from etx_schema.pte import PteFile, write_pte
from etx_schema.pte_layout import PteLayout
from etx_schema.pte_reader import assemble, read_program

MAX_ALIGNMENT = 16384


@dataclass(frozen=True)
class Alignments:
    """How the parts of a file lie, as far as their places tell."""

    segments: int
    constants: int
    named: dict[str, int]

    @classmethod
    def of(cls, program: Program, layout: PteLayout) -> Alignments:
        """Read the alignments off the places of a program as it is stored."""
        filled = [segment.offset for segment in program.segments if segment.size]
        common = _power_of_two(math.gcd(layout.segment_base, *filled), 128)
        table = program.constant_segment
        places = [] if table is None else table.offsets
        named = {}
        for item in program.named_data:
            segment = _segment(program, item.segment_index)
            place = math.gcd(layout.segment_base, segment.offset)
            named[item.key or ""] = max(16, _power_of_two(place, 16))
        return cls(common, _power_of_two(math.gcd(*places), 16), named)


def strip(pte: PteFile) -> PteFile:
    """Return `pte` without the named data `etx/debug`, what is behind that, and stack traces.

    Calls give the same results; what is lost is where in the model an instruction comes from.
    """
    plans = [
        replace(plan, chains=[replace(chain, stacktrace=[]) for chain in plan.chains])
        for plan in pte.program.execution_plan
    ]
    named = {key: blob for key, blob in pte.named_data.items() if not is_for_people(key)}
    return replace(pte, program=replace(pte.program, execution_plan=plans), named_data=named)


def strip_file(source: PathLike, path: PathLike) -> None:
    """Write the file `source` stripped to `path`, whole or not at all; they may be the same."""
    view = load_bytes(source)
    try:
        program, layout = read_program(view)
        alignments = Alignments.of(program, layout)
        pte = strip(assemble(view, program, layout))
    except ProgramError as error:
        raise EtxError(f"{source}: {error}") from error
    for key, blob in pte.named_data.items():
        blob.alignment = alignments.named[key]
    write_pte(
        pte,
        path,
        segment_alignment=alignments.segments,
        constant_alignment=alignments.constants,
    )


def _segment(program: Program, index: int) -> DataSegment:
    known = 0 <= index < len(program.segments)
    return program.segments[index] if known else DataSegment()


def _power_of_two(number: int, default: int) -> int:
    """Return the largest power of two that divides `number`; 0 tells nothing."""
    return min(number & -number, MAX_ALIGNMENT) if number else default
