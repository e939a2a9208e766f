# SPDX-License-Identifier: BSD-3-Clause
"""Something true of this package, run where only what it declares is installed."""

from __future__ import annotations

import etx_schema
from programs import add

data = etx_schema.serialize_pte(add())
assert data[4:8] == b"ET12"
again = etx_schema.read_pte(data)
assert again.program.execution_plan[0].operators[0].name == "aten::add"
assert etx_schema.serialize_pte(again) == data
assert not etx_schema.verify(again)
