# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from case import ALL, BF16, BOOL, F16, F32, F64, FLOATING, I64, REAL, Case

CASES = [
    Case("sum", dtypes=ALL, samples=16),
    Case("mean", dtypes=FLOATING, samples=16),
    Case("prod", dtypes=(F32, I64, F64, BOOL), samples=16),
    Case("prod", dtypes=(F16, BF16), tol=3e-2),
    Case("amax", dtypes=ALL),
    Case("amin", dtypes=ALL),
    Case("max", "reduction_no_dim", dtypes=ALL),
    Case("max", "reduction_with_dim", dtypes=ALL),
    Case("min", "reduction_no_dim", dtypes=ALL),
    Case("min", "reduction_with_dim", dtypes=ALL),
    Case("argmax", dtypes=REAL),
    Case("argmin", dtypes=REAL),
    Case("any", dtypes=ALL, samples=16),
    Case("all", dtypes=(F32, BOOL)),
    Case("var", dtypes=FLOATING, samples=16),
    Case("var", "unbiased", dtypes=(F32, F64)),
    Case("var_mean", dtypes=FLOATING, samples=16),
    Case("std", dtypes=FLOATING),
    Case("std_mean", dtypes=FLOATING, samples=16),
    Case("cumsum", dtypes=REAL),
    Case("cumprod", dtypes=REAL),
    Case("logsumexp", dtypes=(F32,)),
]
