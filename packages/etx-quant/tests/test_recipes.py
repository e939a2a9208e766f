# SPDX-License-Identifier: BSD-3-Clause
"""Recipes, mixed precision and the report of each layer, on the digits."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import Trained
from etx_quant import Int8Quantizer, QuantizationWarning, compare, quantize, quantize_with_report
from etx_quant.recipes import RECIPES
from torch import Tensor, nn


@pytest.fixture(scope="module")
def batches(trained: Trained) -> list[tuple[Tensor]]:
    return [(batch,) for batch in trained.images[:192].split(64)]


def accuracy(trained: Trained) -> Callable[[Callable[..., Any]], float]:
    def measure(model: Callable[..., Any]) -> float:
        with torch.no_grad():
            found = model(trained.images[:64]).argmax(-1)
        return float((found == trained.labels[:64]).float().mean())

    return measure


@pytest.mark.filterwarnings("ignore:recipe .* is for linear layers:UserWarning")
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_quantizes(recipe: str, trained: Trained, batches: list[tuple[Tensor]]) -> None:
    quantized, report = quantize_with_report(trained.model, batches, recipe=recipe)
    assert report.recipe == recipe
    assert report.sqnr == pytest.approx(compare(trained.model, quantized, batches).sqnr)
    assert report.sqnr > (20 if recipe == "int4" else 30)
    names = [layer.name for layer in report.layers]
    assert names == (["enter", "refine", "add", "widen", "head"] if recipe == "int8" else ["head"])
    head = report.layers[-1]
    assert head.float_bytes == 4 * 1280
    assert head.bytes == (640 + 4 * 40 if recipe == "int4" else 1280 + 4 * 10)


@pytest.mark.filterwarnings("ignore::etx_quant.QuantizationWarning")  # 55 is float's only
@pytest.mark.parametrize("target", [30, 44, 55])
def test_the_worst_layers_stay_in_float_until_the_target(
    target: float, trained: Trained, batches: list[tuple[Tensor]]
) -> None:
    quantized, report = quantize_with_report(trained.model, batches, target_sqnr=target)
    assert report.sqnr >= target
    assert compare(trained.model, quantized, batches).sqnr >= target
    kept = {layer.name: layer.alone for layer in report.layers if layer.is_float}
    rest = [layer.alone for layer in report.layers if not layer.is_float]
    assert bool(kept) == (target > 41)
    assert bool(rest) == (target < 50)
    if kept and rest:
        assert max(kept.values()) <= min(rest)  # type: ignore[type-var]
    weights = [p for p in quantized.buffers() if p.dtype == torch.int8]
    assert len(weights) == sum(1 for layer in report.layers if not layer.is_float and layer.bytes)


def test_a_target_that_only_float_reaches_is_warned_of(
    trained: Trained, batches: list[tuple[Tensor]]
) -> None:
    with pytest.warns(QuantizationWarning) as caught:
        quantized, report = quantize_with_report(trained.model, batches, target_sqnr=90)
    (text,) = (str(w.message) for w in caught if w.category is QuantizationWarning)
    found = re.fullmatch(
        r"target_sqnr=90 leaves every layer in float: with all 5 quantized ([\d.]+) dB are "
        r"reached, with only '\w+', which loses least, ([\d.]+) dB; .* use the model as it is",
        text,
    )
    assert found is not None
    assert 30 < float(found[1]) < float(found[2]) < 90
    assert report.kept == tuple(layer.name for layer in report.layers)
    (image,) = batches[0]
    torch.testing.assert_close(quantized(image), trained.model(image))


def test_an_accuracy_can_be_the_goal(trained: Trained, batches: list[tuple[Tensor]]) -> None:
    measure = accuracy(trained)
    best = measure(trained.model)
    quantized = quantize(trained.model, batches, accuracy=measure, least_accuracy=best)
    assert measure(quantized) >= best


def test_the_report_is_text_json_and_a_picture(
    trained: Trained, batches: list[tuple[Tensor]]
) -> None:
    _, report = quantize_with_report(trained.model, batches, target_sqnr=44)
    head, *rows, summary = str(report).splitlines()
    assert head.split()[:2] == ["layer", "operator"]
    assert [row.split()[0] for row in rows] == [layer.name for layer in report.layers]
    assert f"{len(report.kept)} of 5 layers in float" in summary
    document = json.loads(report.json())
    assert [row["name"] for row in document["layers"]] == [layer.name for layer in report.layers]
    root = ElementTree.fromstring(report.svg())
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {layer.name for layer in report.layers} <= set(texts)
    bars = [e for e in root.iter() if e.tag.endswith("rect") and e.get("fill") == "#3d7ea6"]
    assert len(bars) == 5 - len(report.kept)
    assert report.rich().row_count == 5


def test_saturation_is_counted(trained: Trained) -> None:
    dark, light = trained.images[:64] * 0.25, trained.images[:64]
    _, report = quantize_with_report(trained.model, [(dark,)])
    assert all(layer.saturated < 0.01 for layer in report.layers)
    quantizer = Int8Quantizer()
    _, report = quantize_with_report(trained.model, [(dark,), *[(light[:8],)] * 0], quantizer)
    assert report.recipe == "Int8Quantizer"
    (enter, *_) = report.layers
    assert enter.held is not None
    assert enter.held[0] == 0
    assert enter.seen[1] == pytest.approx(enter.held[1], rel=0.2)


def test_steps_are_told(trained: Trained, batches: list[tuple[Tensor]]) -> None:
    told: list[tuple[str, int, int]] = []
    quantize(trained.model, batches, target_sqnr=44, progress=lambda *step: told.append(step))
    assert [step[1:] for step in told if step[0] == "calibrating"] == [(0, 3), (1, 3), (2, 3)]
    assert ("measuring head", 4, 5) in told
    assert all(0 <= done < total for _, done, total in told)


class Mixed(nn.Module):
    """Keyword arguments, integers and several results."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(
        self, tokens: Tensor, *, scale: Tensor, times: int = 2
    ) -> dict[str, tuple[Tensor, Tensor]]:
        x = self.words(tokens) * scale
        return {"both": (torch.tanh(self.a(x)) * times, self.b(x).argmax(-1))}


@pytest.mark.parametrize("recipe", RECIPES)
def test_calls_may_have_keyword_arguments_and_several_results(recipe: str) -> None:
    torch.manual_seed(0)
    calls = [
        {"tokens": torch.randint(0, 20, (3,)), "scale": torch.rand(3, 1), "times": 3}
        for _ in range(4)
    ]
    quantized, report = quantize_with_report(
        Mixed().eval(), calls, recipe=recipe, target_sqnr=20, group_size=8
    )
    assert report.sqnr > 20
    assert {"words", "a", "b"} <= {layer.name for layer in report.layers}
    assert quantized(**calls[0])["both"][1].dtype == torch.int64


class Difference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor, others: dict[str, Tensor], cut: Tensor) -> Tensor:
        y = others["y"] + others["z"] * 9
        result: Tensor = self.a(x) - 3 * self.b(y).tanh()
        return result.masked_fill(cut, -torch.inf)


def call(reverse: bool) -> dict[str, Any]:
    others = {"y": torch.randn(3, 8), "z": torch.randn(3, 8)}
    found = {"x": torch.randn(3, 8), "others": others, "cut": torch.rand(3, 8) > 0.8}
    turned = {"cut": found["cut"], "others": dict(reversed(others.items())), "x": found["x"]}
    return turned if reverse else found


def test_keywords_come_in_any_order_and_what_is_masked_is_no_noise() -> None:
    torch.manual_seed(0)
    model, calls = Difference().eval(), [call(reverse=i % 2 == 0) for i in range(4)]
    quantized, report = quantize_with_report(model, calls, target_sqnr=25)
    assert not report.kept
    found = compare(model, quantized, calls)
    assert report.sqnr == pytest.approx(found.sqnr)
    assert 25 < found.sqnr < 60
    assert found.max_error < 1
    assert all(25 < layer.sqnr < 60 for layer in report.layers)
    x, others, cut = (calls[0][name] for name in ("x", "others", "cut"))
    torch.testing.assert_close(quantized(x, others, cut), quantized(**calls[0]))
    assert compare(lambda x: x, lambda x: x / 0, [(torch.ones(2),)]).sqnr == -torch.inf


def test_an_accuracy_calls_by_place_or_by_name() -> None:
    torch.manual_seed(0)
    model, calls = Difference().eval(), [call(reverse=i % 2 == 0) for i in range(4)]

    def by_place(called: Callable[..., Any]) -> float:
        places = [[each[name] for name in ("x", "others", "cut")] for each in calls]
        return compare(model, called, places).sqnr

    def by_name(called: Callable[..., Any]) -> float:
        return compare(model, called, calls).sqnr

    tuples = [tuple(each[name] for name in ("x", "others", "cut")) for each in calls]
    for data, accuracy in ((calls, by_place), (tuples, by_name)):
        _, report = quantize_with_report(model, data, accuracy=accuracy, least_accuracy=25)
        assert not report.kept
