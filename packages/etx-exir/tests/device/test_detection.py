# SPDX-License-Identifier: BSD-3-Clause
"""Boxes to masks on the device: as many as the data say."""

import etx_runtime
import pytest
import torch
from detection import MaskHead, boxes_and_scores, detections, torchvision_operators
from etx_exir import ExecutorchBackendConfig
from etx_exir.target.check import UnsupportedError
from on_device import assert_same, lowered, on_device


@pytest.fixture(autouse=True)
def operators():
    with torchvision_operators():
        yield


def compare(module, model, inputs):
    """Return how many boxes stayed."""
    with torch.no_grad():
        expected = module(*inputs)
    assert_same(model(*on_device(inputs)), expected)
    return len(expected[0])


def test_a_mask_head():
    torch.manual_seed(0)
    module = MaskHead().eval()
    model = etx_runtime.load(lowered(module, detections(30)).buffer)
    counts = {compare(module, model, detections(30)) for _ in range(4)}
    assert len(counts) > 1
    assert max(counts) < 30
    inputs = detections(30)
    same = (*inputs[:2], inputs[2][:1].expand(30, 4).clone(), inputs[3])
    assert compare(module, model, (same[0], same[1] * 0, *same[2:])) == 1, "one box thirty times"


def test_any_number_of_boxes():
    torch.manual_seed(0)
    module, count = MaskHead().eval(), torch.export.Dim("count", min=2, max=40)
    rows = {0: count}
    program = lowered(module, detections(12), dynamic_shapes=(None, rows, rows, rows))
    model = etx_runtime.load(program.buffer)
    for boxes in (2, 12, 40):
        compare(module, model, detections(boxes))


def test_all_boxes_may_stay_and_none():
    def kept(boxes, scores):
        return torch.ops.torchvision.nms(boxes, scores, 1.0), scores.sum()

    model = etx_runtime.load(lowered(kept, boxes_and_scores(8)).buffer)
    assert compare(kept, model, boxes_and_scores(8)) == 8
    none = etx_runtime.load(lowered(kept, boxes_and_scores(0)).buffer)
    assert compare(kept, none, boxes_and_scores(0)) == 0


def test_executorch_lacks_them():
    both = ExecutorchBackendConfig(target="executorch")
    with pytest.raises(UnsupportedError) as refused:
        lowered(MaskHead().eval(), detections(12), config=both)
    found = {problem.subject for problem in refused.value.problems}
    assert found == {"torchvision::nms.out", "torchvision::roi_align.out"}
