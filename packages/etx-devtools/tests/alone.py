# SPDX-License-Identifier: BSD-3-Clause
"""Something true of this package, run where only what it declares is installed."""

from __future__ import annotations

from etx_devtools import VIEWS, sizes
from etx_schema import serialize_pte
from programs import add

data = serialize_pte(add())
report = sizes(data)
for view in VIEWS:
    assert sum(row.bytes for row in report.by(view)) == len(data)
