# SPDX-License-Identifier: BSD-3-Clause
"""Something true of this package, run where only what it declares is installed."""

from __future__ import annotations

for module, name in (("exir", "to_edge"), ("runtime", "Runtime")):
    failure = None
    try:
        exec(f"from etx_executorch.{module} import {name}")
    except ModuleNotFoundError as error:
        failure = str(error)
    assert failure, f"{name} came from nowhere"
    assert "which is not installed: pip install etx-" in failure, failure
