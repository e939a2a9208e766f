# SPDX-License-Identifier: BSD-3-Clause
"""int8 programs against the quantized model: integer operators have its values, permuted."""

from __future__ import annotations

from etx_devtools.compare import compare
from etx_schema import read_pte
from planted import quantized


def test_no_alarm():
    program, inputs, content = quantized()
    report = compare(read_pte(content), program, [inputs])
    assert report.first is None, "\n".join(report.lines())
    found = {check.operator: check.value for check in report.calls[0].checks}
    assert found["etx::quantized_conv.out"] == "quantize_per_tensor_1.permute(0, 2, 3, 1)"
    assert all(check.made is not None for check in report.calls[0].checks)
