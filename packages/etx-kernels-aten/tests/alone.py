# SPDX-License-Identifier: BSD-3-Clause
"""Something true of this package, run where only what it declares is installed."""

from __future__ import annotations

import etx_runtime
import numpy as np
from etx_schema import serialize_pte
from programs import add

model = etx_runtime.load(serialize_pte(add()), kernels="aten")
x = np.arange(5, dtype=np.float32)
assert np.array_equal(model(x, x), x + x)
