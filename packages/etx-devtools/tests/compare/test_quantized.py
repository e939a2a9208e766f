# SPDX-License-Identifier: BSD-3-Clause
"""int8 programs against the quantized model: integer operators have its values, permuted."""

from __future__ import annotations

from compared_models import exported
from etx_devtools.compare import compare
from etx_schema import read_pte
from planted import quantized


def test_noise_by_design_and_of_the_runtime():
    program, inputs, content = quantized()
    floating = exported("convolutions")[0]
    report = compare(read_pte(content), program, [inputs], floating=floating)
    (call,) = report.calls
    found = {layer.float_value: layer for layer in call.layers}
    assert {"relu6", "batch_norm_1", "sigmoid", "add", "linear", "softmax"} <= set(found)
    for layer in call.layers:
        assert 10 < layer.design < 60
        assert layer.runtime > layer.design
        assert abs(layer.device - layer.design) < 3
    assert found["linear"].module == "head"
    assert "signal to noise in dB" in "\n".join(report.lines())


def test_no_alarm():
    program, inputs, content = quantized()
    report = compare(read_pte(content), program, [inputs])
    assert report.first is None, "\n".join(report.lines())
    found = {check.operator: check.value for check in report.calls[0].checks}
    assert found["etx::quantized_conv.out"] == "quantize_per_tensor_1.permute(0, 2, 3, 1)"
    assert all(check.made is not None for check in report.calls[0].checks)
