# SPDX-License-Identifier: BSD-3-Clause
"""Something true of this package, run where only what it declares is installed."""

from __future__ import annotations

from etx_devtools import VIEWS, BundledProgram, sizes
from etx_devtools.diff import diff
from etx_devtools.report import document, page
from etx_schema import serialize_pte
from programs import add

data = serialize_pte(add())
report = sizes(data)
for view in VIEWS:
    assert sum(row.bytes for row in report.by(view)) == len(data)
assert bytes(BundledProgram.load(BundledProgram(data).serialize()).program) == data
assert diff(data, data).is_empty
assert "Content-Security-Policy" in page(document(data))
