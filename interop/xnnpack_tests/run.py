# SPDX-License-Identifier: BSD-3-Clause
"""Run ExecuTorch's XNNPACK tests, as they lie in its wheel, on ETX: `run.py SITE-PACKAGES`."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "exporter_tests"))

from names import names  # noqa: E402
from suite import Suite, main  # noqa: E402

ROOT = "executorch.backends.xnnpack.test."
OPS = (
    "abs add avgpool2d batch_norm bilinear2d bmm cat ceil check_quant_params clamp clone conv1d "
    "conv2d cos div elu exp floor gelu hardswish hardtanh leaky_relu linear log lstm max_dim "
    "maximum maxpool2d mean_dim minimum multiply negate permute pow prelu quantize_per_tensor "
    "relu rsqrt sigmoid sin slice_copy softmax sqrt square static_constant_pad sub tanh to_copy"
)
FILES = tuple(f"ops.test_{name}" for name in OPS.split())


if __name__ == "__main__":
    suite = Suite(ROOT, FILES, HERE / "not_applicable.json", names)
    sys.exit(main(suite, sys.argv[1:]))
