# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from case import ALL, BOOL, F16, F32, F64, I8, I64, U8, Case

MOVED = (F32, I64, F16, U8, F64, BOOL)
FEW = (F32, I8)

CASES = [
    Case("cat", dtypes=MOVED, samples=30),
    Case("stack", dtypes=MOVED),
    Case("split", dtypes=FEW),
    Case("split", "list_args", dtypes=FEW),
    Case("split_with_sizes", dtypes=FEW),
    Case("split_with_sizes_copy", dtypes=MOVED),
    Case("unbind_copy", dtypes=MOVED),
    Case("unbind", dtypes=FEW),
    Case("__getitem__", dtypes=MOVED, samples=40),
    Case("select", dtypes=FEW),
    Case("narrow_copy", dtypes=MOVED, samples=20),
    Case("slice_scatter", dtypes=MOVED, samples=20),
    Case("select_scatter", dtypes=MOVED, samples=20),
    Case("as_strided_copy", dtypes=FEW),
    Case("diagonal_copy", dtypes=MOVED, samples=30),
    Case("alias_copy", dtypes=MOVED),
    Case("view_copy", dtypes=MOVED, samples=20),
    Case("reshape", dtypes=FEW, samples=20),
    Case("squeeze_copy", dtypes=MOVED, samples=20),
    Case("squeeze", "multiple", dtypes=FEW, samples=20),
    Case("unsqueeze_copy", dtypes=MOVED, samples=20),
    Case("t_copy", dtypes=MOVED),
    Case("transpose_copy", dtypes=MOVED, samples=20),
    Case("permute_copy", dtypes=(*ALL, I8), samples=20),
    Case("expand_copy", dtypes=MOVED, samples=20),
    Case("repeat", dtypes=MOVED, samples=30),
    Case("flip", dtypes=MOVED, samples=20),
    Case("roll", dtypes=MOVED, samples=30),
    Case("unfold_copy", dtypes=MOVED, samples=30),
    Case("nn.functional.pixel_shuffle", dtypes=MOVED, samples=20),
    Case("nn.functional.pixel_unshuffle", dtypes=MOVED, samples=20),
    Case("nn.functional.pad", "constant", dtypes=MOVED, samples=40),
    Case("nn.functional.pad", "reflect", dtypes=(F32, F16, F64), samples=40),
    Case("nn.functional.pad", "replicate", dtypes=(F32, F16, F64), samples=40),
    Case("nn.functional.channel_shuffle", dtypes=FEW),
    Case("_upsample_bilinear2d_aa", dtypes=(F32, F64), samples=30),
]
