# SPDX-License-Identifier: BSD-3-Clause
"""Something true of this package, run where only what it declares is installed."""

from __future__ import annotations

import etx_runtime
from etx_schema import serialize_pte
from programs import add

program = etx_runtime.Runtime.get().load_program(serialize_pte(add()))
assert set(program.method_names) == {"forward"}
failure = None
try:
    program.load_method("forward")
except etx_runtime.LoadError as error:
    failure = str(error)
assert failure, "a kernel came from nowhere"
assert "aten::add.out" in failure, failure
