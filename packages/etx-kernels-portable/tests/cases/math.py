# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from case import BF16, F16, F32, F64, FLOATING, I32, I64, Case

CASES = [
    Case("mm", dtypes=(F32, F64, I64, F16, BF16)),
    Case("bmm", dtypes=(F32, F64, I64, F16, BF16)),
    Case("addmm", dtypes=(F32, F64, I64, F16, BF16), samples=16),
    Case("matmul", dtypes=(F32,), samples=24, tol=1e-4),
    Case("einsum", dtypes=(F32,), tol=1e-4),
    Case("nn.functional.conv1d", dtypes=FLOATING, samples=16),
    Case("nn.functional.conv2d", dtypes=FLOATING, samples=24),
    Case("nn.functional.conv3d", dtypes=FLOATING, samples=16),
    Case("nn.functional.conv_transpose1d", dtypes=(F32, F64), samples=16, tol=1e-4),
    Case("nn.functional.conv_transpose2d", dtypes=(F32, F64), samples=16, tol=1e-4),
    Case("nn.functional.conv_transpose3d", dtypes=(F32, F64), samples=16, tol=1e-4),
    Case("nn.functional.avg_pool2d", dtypes=(F32, F64, I64), samples=24),
    Case("nn.functional.adaptive_avg_pool2d", dtypes=FLOATING),
    Case("nn.functional.max_pool2d", dtypes=(*FLOATING, I32), samples=24),
    Case("softmax", dtypes=FLOATING, samples=16),
    Case("log_softmax", dtypes=(F32, F64), samples=16),
    Case("log_softmax", dtypes=(F16, BF16), tol=2e-2),
    Case("nn.functional.layer_norm", dtypes=FLOATING, samples=16),
    Case("nn.functional.group_norm", dtypes=(F32, F64), samples=16),
    Case("nn.functional.gelu", dtypes=FLOATING),
    Case("cdist", dtypes=(F32, F64), samples=24, tol=1e-4),
    Case("nn.functional.pdist", dtypes=(F32, F64)),
    Case("nn.functional.grid_sample", dtypes=(F32, F64), samples=24, tol=1e-4),
]
