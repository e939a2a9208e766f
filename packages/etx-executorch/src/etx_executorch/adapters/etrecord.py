# SPDX-License-Identifier: BSD-3-Clause
"""ETRecords of managers whose graphs call operators of the Edge dialect."""

from __future__ import annotations

from typing import Any

from etx_exir import etrecord
from etx_exir.etrecord import parse_etrecord

from etx_executorch.adapters.dialect import plain

__all__ = ["ETRecord", "generate_etrecord", "parse_etrecord"]


class ETRecord(etrecord.ETRecord):
    """Programs by method, and maps from the instructions of a file to what they were made of."""

    def add_edge_dialect_program(self, edge_dialect_program: Any) -> None:
        """Keep copies of the Edge programs of a manager, as they are now."""
        names = sorted(edge_dialect_program.methods)
        self.keep_edge({name: plain(edge_dialect_program.exported_program(name)) for name in names})


def generate_etrecord(
    et_record: Any,
    edge_dialect_program: Any,
    executorch_program: Any,
    extra_recorded_export_modules: Any = None,
) -> None:
    """Write a record of Edge programs and of the file that they became."""
    record = ETRecord()
    record.add_edge_dialect_program(edge_dialect_program)
    record.add_executorch_program(executorch_program)
    record.add_extra_export_modules(extra_recorded_export_modules or {})
    record.save(et_record)
