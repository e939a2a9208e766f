# SPDX-License-Identifier: BSD-3-Clause
"""Something true of this package, run where only what it declares is installed."""

from __future__ import annotations

from pathlib import Path

from etx_backend_xnnpack import describe_blob, read_blob, write_blob
from etx_schema import read_pte

pte = read_pte(Path(__file__).parent / "data" / "mobilenet.pte")
(blob,) = pte.delegates
assert write_blob(read_blob(blob)) == bytes(blob)
assert any("Conv2d" in line for line in describe_blob(blob, pte.named_data)["lines"])
