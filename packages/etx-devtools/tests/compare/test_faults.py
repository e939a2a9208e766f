# SPDX-License-Identifier: BSD-3-Clause
"""Programs with one planted fault: the report leads to its instruction, module and line."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from compared_models import exported, rows
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_devtools.compare import compare
from etx_devtools.compare.inside import compile_tapped
from etx_devtools.compare.reduce import write_reduced
from etx_schema import Double, Int
from planted import (
    Plan,
    argument,
    dim_order,
    initial_state,
    int8_weight,
    is_still_wrong,
    other_branch,
    overlap,
    quantized,
    read_instead,
    renamed,
    scaled,
    swapped,
    to_nan,
    weight,
    wrong_kernel,
)

CONVOLUTION = "aten::convolution.out"
DEQUANTIZE = "quantized_decomposed::dequantize_per_tensor.out"
FAULTS = {
    **{
        f"a wrong {name} of convolution {turn}, {kind}": ("convolutions", plant, module)
        for turn, module in enumerate(("stem.0", "depthwise"))
        for name, place in (("weight", 1), ("bias", 2))
        for kind, change in (("partly", scaled(0.2, 1.2)), ("slightly", scaled(1, 1.001)))
        for plant in (weight(CONVOLUTION, turn, place, change),)
    },
    "NaN in a weight": ("convolutions", weight(CONVOLUTION, 1, 1, to_nan), "depthwise"),
    "NaN in a weight of a cell": ("recurrent", weight("aten::linear.out", 1, 1, to_nan), "cell"),
    "NaN in a weight of a layer": ("layers", weight("etx::lstm.out", 0, 3, to_nan), "cell"),
    "a wrong weight of a layer": (
        "layers",
        weight("etx::lstm.out", 1, 4, scaled(0.2, 1.2)),
        "cell",
    ),
    "a wrong weight of a cell": (
        "recurrent",
        weight("aten::linear.out", 1, 1, scaled(0.2, 1.2)),
        "cell",
    ),
    "another operator": ("convolutions", renamed("aten::sigmoid.out", "aten::tanh"), ""),
    "another operator in a branch": ("branch", renamed("aten::sin.out", "aten::cos"), ""),
    "another operator of two inputs": ("nested", renamed("aten::tanh.out", "aten::sigmoid"), ""),
    "another operator, dynamic": ("dynamic", renamed("aten::tanh.out", "aten::sigmoid"), "1"),
    "another operator in a cell": ("recurrent", renamed("aten::tanh.out", "aten::sigmoid"), "cell"),
    "another operator in its last step": (
        "recurrent",
        renamed("aten::sigmoid.out", "aten::tanh", 5),
        "cell",
    ),
    "another operator in a loop": ("loop", renamed("aten::sin.out", "aten::tanh"), ""),
    "another operator in a loop of a loop": ("counted", renamed("aten::sin.out", "aten::cos"), ""),
    "another operator on each row": ("rows", renamed("aten::tanh.out", "aten::sigmoid"), ""),
    "another operator that scans": ("rows", renamed("aten::sigmoid.out", "aten::tanh"), ""),
    "a wrong kernel": ("convolutions", wrong_kernel("aten::sigmoid.out", "aten::tanh"), ""),
    "a wrong kernel in a branch": ("branch", wrong_kernel("aten::sin.out", "aten::cos"), ""),
    "a wrong kernel in a loop": ("loop", wrong_kernel("aten::sin.out", "aten::tanh"), ""),
    "a wrong kernel in a cell": (
        "recurrent",
        wrong_kernel("aten::tanh.out", "aten::sigmoid", 1),
        "cell",
    ),
    "a wrong kernel in a block": (
        "transformer",
        wrong_kernel("aten::add.out", "aten::sub"),
        "block",
    ),
    "swapped operands": ("nested", swapped("aten::sub.out"), ""),
    "swapped matrices": ("nested", swapped("aten::linear.out"), ""),
    "a wrong number": (
        "transformer",
        argument("aten::mul.Scalar_out", 1, Double(double_val=4.01)),
        "",
    ),
    "a wrong number in a loop": (
        "loop",
        argument("executorch_prim::add.Scalar", 1, Int(int_val=2)),
        "",
    ),
    "another operand": (
        "transformer",
        read_instead("aten::add.out", 1, "aten::mul.Scalar_out"),
        "block",
    ),
    "a wrong comparison": ("branch", renamed("aten::gt.Scalar_out", "aten::lt"), ""),
    "a wrong number that scans": (
        "rows",
        argument("aten::mul.Scalar_out", 1, Double(double_val=2.1)),
        "",
    ),
    "a wrong end of a loop": (
        "loop",
        renamed("executorch_prim::lt.Scalar", "executorch_prim::le"),
        "",
    ),
    "a wrong branch": ("branch", other_branch, ""),
    "a wrong order of dimensions": (
        "convolutions",
        dim_order(CONVOLUTION, 1, [0, 2, 3, 1]),
        "stem.0",
    ),
    "a wrong order of a matrix": ("transformer", dim_order("aten::linear.out", 1, [1, 0]), "block"),
    "stale state": ("counter", read_instead("aten::copy_", 1, "aten::copy.out"), ""),
    "wrong initial state": ("counter", initial_state, ""),
    "memory of a later reader": (
        "convolutions",
        overlap("aten::sigmoid.out", "aten::add.out", 0),
        "",
    ),
    "memory of a residual": (
        "transformer",
        overlap("aten::linear.out", "aten::add.out", 0, (3, 1)),
        "block",
    ),
    **{
        f"a wrong int8 weight of {name}": (
            "int8",
            int8_weight(f"etx::quantized_{name}.out"),
            module,
        )
        for name, module in (
            ("conv", "stem.0"),
            ("depthwise_conv", "depthwise"),
            ("linear", "head"),
        )
    },
    "a wrong scale": ("int8", argument(DEQUANTIZE, 1, Double(double_val=0.5)), ""),
    "a wrong zero point": ("int8", argument(DEQUANTIZE, 2, Int(int_val=9)), ""),
    "a wrong int8 operand": ("int8", swapped("etx::quantized_add.out"), ""),
}
ALARMS = {
    "a wrong weight of a cell": 2,
    "NaN in a weight of a layer": 4,
    "a wrong weight of a layer": 3,
    "memory of a later reader": 2,
    "memory of a residual": 2,
}
"""A cell reads its weight in two steps; the model has one operator of all layers, whose results are
those of the last one and both states of all; what reads memory that was overwritten is wrong, too.
"""
OF_TORCH = ("activation.py", "transformer.py", "functional.py")


@pytest.mark.parametrize("name", FAULTS)
def test_the_report_leads_to_the_fault(name):
    model, plant, module = FAULTS[name]
    plan = Plan(model)
    number = plant(plan)
    report = plan.report()
    text = "\n".join(report.lines())
    assert report.first is not None, text
    check = report.first[1]
    assert f"instruction {check.instruction} is the first" in text.splitlines()[0]
    assert check.instruction == number, text
    assert check.module.startswith(module), text
    assert check.source.partition(":")[0] in ("compared_models.py", *OF_TORCH)
    wrong = {c.instruction for call in report.calls for c in call.checks if c.wrong}
    assert len(wrong) == ALARMS.get(name, 1), text


IN_A_FILE = [name for name in FAULTS if "kernel" not in name]
OF_SEVERAL = ("loop", "branch", "state", "memory", "row", "scans")
REDUCED = [name for name in IN_A_FILE if not any(word in name for word in OF_SEVERAL)]


@pytest.mark.parametrize("name", [*REDUCED, "memory of a later reader", "memory of a residual"])
def test_a_fault_is_a_small_program(name, tmp_path):
    model, plant, _ = FAULTS[name]
    plan = Plan(model)
    plant(plan)
    found = plan.report().calls[0].found
    files = write_reduced(plan.pte, plan.plan, found, tmp_path / "small.pte")
    assert is_still_wrong(*files, 2 if "memory" in name else 1)


INSIDE = [
    ("stem.0.weight", "batch_norm", "stem.1"),
    ("depthwise.bias", "batch_norm_1", "norm"),
    ("norm.running_mean", "batch_norm_1", "norm"),
    ("head.weight", "linear", "head"),
]


def changed(part):
    """Return the model with one element changed."""
    wrong = copy.deepcopy(rows()["convolutions"][0])
    wrong.load_state_dict(exported("convolutions")[0].state_dict, strict=False)
    with torch.no_grad():
        wrong.state_dict()[part].view(-1)[0] += 0.5
    return wrong


@pytest.mark.parametrize(("part", "value", "module"), INSIDE)
def test_inside_a_delegate(part, value, module):
    program, inputs = exported("convolutions")
    with torch.no_grad():
        other = torch.export.export(changed(part), inputs)
    report = compare(compile_tapped(other, [XnnpackPartitioner()]), program, [inputs])
    check = report.first[1]
    assert (check.operator, check.value) == ("delegate XnnpackBackend", value)
    assert check.module == module
    assert check.source.startswith("compared_models.py:")
    assert [c.value for c in report.calls[0].checks if c.wrong] == [value]


INSIDE_INT8 = [
    ("conv2d", 1, "quantize_per_tensor_1"),
    ("conv2d_1", 1, "quantize_per_tensor_2"),
    ("linear", 1, "quantize_per_tensor_7"),
    ("linear", 2, "quantize_per_tensor_7"),
]


@pytest.mark.parametrize(("layer", "operand", "value"), INSIDE_INT8)
def test_inside_an_int8_delegate(layer, operand, value):
    program, inputs, _ = quantized()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = copy.deepcopy(program)
    part = next(node for node in other.graph.nodes if node.name == layer).args[operand]
    signature = other.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    name = names[(part.args[0] if part.op == "call_function" else part).name]
    constants = {**other.state_dict, **other.constants}[name]
    with torch.no_grad():
        constants.view(-1)[:4] += 20 if constants.dtype == torch.int8 else 0.1
    report = compare(compile_tapped(other, [XnnpackPartitioner()]), program, [inputs])
    check = report.first[1]
    assert (check.operator, check.value) == ("delegate XnnpackBackend", value)
    assert check.source.startswith("compared_models.py:")
    assert {check.dtype for check in report.calls[0].checks} == {"int8", "float32"}
