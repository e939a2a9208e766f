# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong is said before the model is exported, with layer or argument and value."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from etx_quant import (
    Int8Quantizer,
    QuantizationError,
    QuantizationWarning,
    compare,
    prepare_training,
    quantize,
    quantize_with_report,
)
from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
        self.head = nn.Linear(4 * 36, 10)

    def forward(self, image: Tensor, gain: float = 1.0) -> Tensor:
        result: Tensor = self.head(self.body(image).flatten(1) * gain)
        return result


GOOD = (torch.rand(2, 3, 8, 8),)
NAN = torch.rand(2, 3, 8, 8)
NAN[0, 1, 2, 3] = torch.nan

BATCHES: dict[str, tuple[Any, str]] = {
    "none": ([], "calibration is empty"),
    "a tensor": (GOOD[0], "calibration is a tensor; expected tuples"),
    "tensors": ([GOOD[0]], "batch 0: it is a Tensor; expected a tuple"),
    "channels": (
        [(torch.rand(2, 1, 8, 8),)],
        r"batch 0: float32\[2, 1, 8, 8\] does not fit .* layer 'body.0' \(Conv2d\)",
    ),
    "size": (
        [(torch.rand(2, 3, 9, 9),)],
        r"batch 0: .* layer 'head' \(Linear\) raises RuntimeError: .*196",
    ),
    "a later size": (
        [GOOD, (torch.rand(2, 3, 8, 9),)],
        r"batch 1, argument 'image': it is float32\[2, 3, 8, 9\], in batch 0 float32\[2, 3, 8, 8\]",
    ),
    "dtype": ([GOOD, (GOOD[0].double(),)], "batch 1, argument 'image': it is float64"),
    "count": ([GOOD, (*GOOD, 2.0)], "batch 1: it has argument 'image', argument 'gain', batch 0"),
    "kind": ([(*GOOD, 1.0), (*GOOD, "x")], "batch 1, argument 'gain': it is a str, in batch 0"),
    "nan": (
        [GOOD, (NAN,)],
        r"batch 1, argument 'image': 1 of 384 values are not finite, the first at "
        r"\(0, 1, 2, 3\): nan",
    ),
    "nothing": (None, "calibration is None; expected tuples"),
    "empty tensors": ([(GOOD[0][:0],)], r"float32\[0, 3, 8, 8\] without elements"),
    "arrays": ([(GOOD[0].numpy(),)], r"batch 0: numpy float32\[2, 3, 8, 8\] does not fit"),
    "infinite": ([(GOOD[0] / 0,)], r"384 of 384 values .* \(0, 0, 0, 0\): inf"),
}


@pytest.fixture
def no_export(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where the first long step is reached."""

    def export(*_: Any, **__: Any) -> None:
        raise AssertionError("the model is exported although its data are wrong")

    monkeypatch.setattr(torch.export, "export", export)


@pytest.mark.usefixtures("no_export")
@pytest.mark.parametrize("name", BATCHES)
def test_data(name: str) -> None:
    batches, message = BATCHES[name]
    with pytest.raises(QuantizationError, match=message):
        quantize(Net().eval(), batches)


OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "recipe": ({"recipe": "int3"}, "recipe 'int3': expected one of int8, int8-dynamic"),
    "groups": (
        {"recipe": "int4", "group_size": 32},
        "layer 'head': a row of its weight has 144 numbers, which groups of 32 do not divide; .*"
        r"keep_float=\['head'\]",
    ),
    "one number": ({"recipe": "int4", "group_size": 1}, "a group of 1 weights"),
    "module": ({"keep_float": ["neck"]}, "no module 'neck'; it has body, body.0, body.1, head"),
    "module of a quantizer": (
        {"quantizer": Int8Quantizer().set_module_name("body.9", None)},
        "set_module_name: the model has no module 'body.9'; it has body, body.0",
    ),
    "letters": ({"keep_float": "head"}, "keep_float is 'head'; expected a list"),
    "letters for groups": ({"recipe": "int4", "group_size": "32"}, "a group of '32' weights"),
    "letters for decibels": ({"target_sqnr": "20"}, "target_sqnr is '20'; expected a number"),
    "no number of decibels": ({"target_sqnr": float("nan")}, "target_sqnr is nan"),
    "a recipe as quantizer": ({"quantizer": "int8"}, "quantizer is 'int8'; .* goes to recipe="),
    "a recipe beside a quantizer": (
        {"quantizer": Int8Quantizer(), "recipe": "int4"},
        "a quantizer or recipe='int4', not both",
    ),
    "half a goal": ({"least_accuracy": 0.9}, "go together"),
    "two goals": (
        {"target_sqnr": 3.0, "accuracy": lambda m: 1.0, "least_accuracy": 0.5},
        "not both",
    ),
}


@pytest.mark.usefixtures("no_export")
@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str) -> None:
    options, message = OPTIONS[name]
    with pytest.raises(QuantizationError, match=message):
        quantize(Net().eval(), [GOOD], **options)


@pytest.mark.usefixtures("no_export")
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (None, "model is None; expected a torch.nn.Module"),
        (Net().to("meta"), "'body.0.weight' is on device meta"),
    ],
)
def test_models(model: Any, message: str) -> None:
    with pytest.raises(QuantizationError, match=message):
        quantize(model, [GOOD])


def test_an_exported_program_is_asked_for_its_module() -> None:
    program = torch.export.export(Net().eval(), GOOD)
    with pytest.raises(QuantizationError, match=r"pass the module, or its \.module\(\)"):
        quantize(program, [GOOD])  # type: ignore[arg-type]
    assert compare(program.module(), quantize(program.module(), [GOOD]), [GOOD]).sqnr > 30


def test_a_model_of_halves_is_told_so() -> None:
    with pytest.raises(QuantizationError, match=r"'body.0' is float16; call \.float\(\)"):
        quantize(Net().eval().half(), [(GOOD[0].half(),)])


@pytest.mark.parametrize("recipe", ["int8-dynamic", "int8-weight", "int4"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_recipes_are_for_models_of_float32(dtype: torch.dtype, recipe: str) -> None:
    model, x = nn.Linear(16, 4).to(dtype), torch.rand(2, 16, dtype=dtype)
    with pytest.raises(QuantizationError, match=f"'linear' is {dtype}".replace("torch.", "")):
        quantize(model, [(x,)], recipe=recipe, group_size=8)


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.b(self.a(x[:, 4:]).relu()), self.b(self.a(x).relu())


def test_layers_of_no_elements() -> None:
    torch.manual_seed(0)
    model, few = Rows().eval(), (torch.rand(2, 4, 16),)
    with pytest.raises(QuantizationError, match=r"what layer .* has no elements in any batch"):
        quantize(model, [few])
    for options in ({}, {"target_sqnr": 20.0}):
        quantized, report = quantize_with_report(model, [few], recipe="int8-dynamic", **options)
        assert compare(model, quantized, [few]).sqnr > 30
        assert "no values" in str(report)


def test_what_cannot_be_exported_says_why() -> None:
    class Branch(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(QuantizationError, match="does not capture the model: Guard"):
        quantize(Branch(), [GOOD])


def test_training_leaves_the_model_as_it_was() -> None:
    class Branch(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.sum() > 0 else -x

    model = Branch().eval()
    with pytest.raises(QuantizationError, match="does not capture the model: Guard"):
        prepare_training(model, GOOD)
    assert not model.training
    with pytest.raises(QuantizationError, match=r"example is a Tensor; expected a tuple"):
        prepare_training(model, GOOD[0])  # type: ignore[arg-type]


def test_a_refusal_leaves_the_model_in_training() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout()).train()
    with pytest.raises(QuantizationError, match="does not fit"):
        quantize(model, [(torch.rand(2, 1, 8, 8),)])
    assert all(module.training for module in model.modules())


def test_an_accuracy_that_is_no_number() -> None:
    with pytest.raises(QuantizationError, match="what accuracy returned is None"):
        quantize(Net().eval(), [GOOD], accuracy=lambda model: None, least_accuracy=0.9)  # type: ignore[arg-type,return-value]


def test_a_misspelt_option_lists_those_there_are() -> None:
    with pytest.raises(TypeError, match="no option 'targetsqnr'; it has recipe, group_size"):
        quantize_with_report(Net().eval(), [GOOD], targetsqnr=3)


@pytest.mark.parametrize("names", [["body.0", "head"], ["body", "head"], [""]])
@pytest.mark.parametrize("recipe", ["int8", "int4"])
def test_all_that_has_weights_kept_in_float(names: list[str], recipe: str) -> None:
    message = "nothing is quantized: keep_float names every layer with a weight; name fewer"
    options: dict[str, Any] = {"recipe": recipe, "group_size": 16, "keep_float": names}
    with pytest.raises(QuantizationError, match=message):
        quantize(Net().eval(), [GOOD], **options)


def test_a_layer_that_groups_do_not_divide_can_stay_in_float() -> None:
    model = nn.Sequential(nn.Linear(20, 32), nn.Linear(32, 4)).eval()
    x = torch.rand(2, 20)
    quantized = quantize(model, [(x,)], recipe="int4", keep_float=["0"])
    assert [p.shape for p in quantized.parameters() if p.dim() == 2] == [(32, 20)]


@pytest.mark.parametrize("recipe", ["int8-dynamic", "int8-weight", "int4"])
def test_recipes_for_linear_layers_say_what_they_leave(recipe: str) -> None:
    convolution = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten()).eval()
    with pytest.raises(QuantizationError, match=f"'{recipe}' .* 1 convolutions in float; .*'int8'"):
        quantize(convolution, [GOOD], recipe=recipe)
    both = nn.Sequential(nn.Conv2d(3, 16, 7), nn.Flatten(), nn.Linear(64, 2)).eval()
    with pytest.warns(QuantizationWarning, match="with 2,352 of 2,480 weights; recipe 'int8'"):
        quantize(both, [GOOD], recipe=recipe)


def test_a_model_with_branches_is_called_as_it_is() -> None:
    class Branch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter, self.left, self.right = (nn.Linear(8, 8) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            x = self.enter(x)
            chosen: Tensor = torch.cond(x.sum() > 0, self.left, self.right, (x,))
            return chosen

    torch.manual_seed(0)
    model, x = Branch().eval(), torch.rand(2, 8)
    with pytest.warns(QuantizationWarning, match="cond stays in float, with 128 of 192 weights"):
        quantized = quantize(model, [(x,)], recipe="int8-dynamic")
    assert compare(model, quantized, [(x,)]).sqnr > 30


def test_an_accuracy_that_float_does_not_have() -> None:
    with pytest.raises(QuantizationError, match=r"0\.9 is not reached with everything in float"):
        quantize(Net().eval(), [GOOD], accuracy=lambda model: 0.5, least_accuracy=0.9)


def test_values_without_a_range_are_refused() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(self.layer(x) * torch.where(x > 0.5, 1e35, 1.0))

    with pytest.raises(QuantizationError, match=r"batch 0: what layer 'mul|where'"):
        quantize(Masked().eval(), [(torch.rand(2, 4),)])
