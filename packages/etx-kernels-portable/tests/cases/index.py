# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from case import ALL, BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, Case

MOVED = (F32, I64, F16, U8, F64, BOOL)
SUMMED = (F32, I64, F64, BF16, I32, U8, BOOL)

CASES = [
    Case("nn.functional.embedding", dtypes=(F32, F64, F16, BF16), samples=20),
    Case("index_put", dtypes=SUMMED, samples=30),
    Case("index_select", dtypes=MOVED, samples=20),
    Case("gather", dtypes=MOVED, samples=30),
    Case("scatter", dtypes=MOVED, samples=30),
    Case("scatter_add", dtypes=(F32, I64, F64, BF16, I32, U8), samples=30),
    *(
        Case("scatter_reduce", how, dtypes=(F32, I64, F64, BF16, F16, I32, U8), samples=30)
        for how in ("sum", "prod", "mean", "amax", "amin")
    ),
    Case("masked_scatter", dtypes=MOVED, samples=20),
    Case("masked_select", dtypes=MOVED, samples=20),
    Case("nonzero", dtypes=(*ALL, I8), samples=20),
    Case("repeat_interleave", dtypes=(F32, I64), samples=20),
    Case("topk", dtypes=(F32, F64), samples=30),
    Case("sort", dtypes=(F32, F64), samples=30),
]
