# SPDX-License-Identifier: BSD-3-Clause
"""Programs are compiled for torch's operators, and told what is left to leave torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import etx_runtime
import pytest
import torch
from etx_exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from etx_kernels_aten.target import target_path
from etx_schema import Target, read_pte
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

ATEN = ExecutorchBackendConfig(target="aten")
VISION = {
    "roi_align": "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


def roi_align(features, rois, scale, height, width, ratio, aligned):
    """Sample the middle of each bin."""
    size = features.new_tensor(features.shape[:1:-1])
    found = []
    for roi in rois:
        left, top, right, bottom = roi[1:] * scale
        xs = left + (right - left) * (torch.arange(width) + 0.5) / width
        ys = top + (bottom - top) * (torch.arange(height) + 0.5) / height
        grid = torch.stack(torch.meshgrid(xs, ys, indexing="xy"), -1) * 2 / size - 1
        found.append(F.grid_sample(features[int(roi[0])][None], grid[None], align_corners=False)[0])
    return torch.stack(found)


def nms(boxes, scores, threshold):
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(2)
    overlap = shared / (area[:, None] + area - shared)
    kept: list[int] = []
    for i in scores.argsort(descending=True).tolist():
        if all(overlap[i, k] <= threshold for k in kept):
            kept.append(i)
    return torch.tensor(kept)


def fake_roi_align(features, rois, scale, height, width, ratio, aligned):
    return features.new_empty((rois.shape[0], features.shape[1], height, width))


def fake_nms(boxes, scores, threshold):
    size = torch.library.get_ctx().new_dynamic_size(min=0)
    return boxes.new_empty((size,), dtype=torch.int64)


@pytest.fixture
def vision():
    """Register operators as torchvision has them, unless it is here with its own."""
    if hasattr(torch.ops.torchvision, "roi_align"):
        yield
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name, schema in VISION.items():
        library.define(name + schema)
        library.impl(name, globals()[name], "CPU")
        torch.library.register_fake(f"torchvision::{name}", globals()[f"fake_{name}"], lib=library)
    yield
    library._destroy()


class MaskHead(nn.Module):
    """Detections to masks: suppressed boxes, aligned features, convolutions, a mask of each."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.logits = nn.Conv2d(8, 3, 1)

    def forward(self, features, boxes, scores):
        kept = torch.ops.torchvision.nms(boxes, scores, 0.5)
        torch._check(kept.shape[0] <= boxes.shape[0])
        torch._check(kept.shape[0] >= 1)
        rois = F.pad(boxes[kept], (1, 0))
        aligned = torch.ops.torchvision.roi_align(features, rois, 0.25, 14, 14, 2, False)
        masks = self.logits(self.up(self.conv(aligned)).relu()).sigmoid()
        return kept, masks


def detections():
    corners = torch.rand(12, 2) * 40
    boxes = torch.cat([corners, corners + 4 + torch.rand(12, 2) * 16], 1)
    return torch.randn(1, 4, 16, 16), boxes, torch.rand(12)


def operators_of(program):
    (plan,) = read_pte(program.buffer).program.execution_plan
    return {f"{op.name}.{op.overload}" for op in plan.operators}


def test_a_mask_head(vision):
    model, inputs = MaskHead().eval(), detections()
    program = to_edge(torch.export.export(model, inputs)).to_executorch(ATEN)
    assert {"torchvision::nms.out", "torchvision::roi_align.out"} <= operators_of(program)
    run = etx_runtime.load(program.buffer, kernels="aten", outputs="torch")
    for _ in range(3):
        with torch.no_grad():
            for given, expected in zip(run(*inputs), model(*inputs), strict=True):
                assert_close(given, expected)
        inputs = detections()


class Runs(nn.Module):
    def forward(self, x):
        values, _, counts = torch.unique_consecutive(x, return_inverse=True, return_counts=True)
        torch._check(values.shape[0] <= x.shape[0])
        return values, counts


def test_unique_consecutive_stays_one_operator():
    x = torch.tensor([1, 1, 2, 2, 2, 7, 1])
    whole = EdgeCompileConfig(preserve_ops=[torch.ops.aten.unique_consecutive.default])
    program = to_edge(torch.export.export(Runs(), (x,)), compile_config=whole).to_executorch(ATEN)
    run = etx_runtime.load(program.buffer, kernels="aten", outputs="torch")
    for y in (x, torch.zeros(7, dtype=torch.int64), torch.arange(7)):
        for given, expected in zip(run(y), Runs()(y), strict=True):
            assert_close(given, expected)
    assert operators_of(program) == {"aten::unique_consecutive.out"}


def test_what_is_left_to_leave_torch(vision, tmp_path):
    whole = EdgeCompileConfig(preserve_ops=[torch.ops.aten.unique_consecutive.default])
    head = torch.export.export(MaskHead().eval(), detections())
    runs = torch.export.export(Runs(), (torch.arange(7),))
    left = {"head": set(), "runs": {"aten::unique_consecutive.out"}}
    for name, exported in {"head": head, "runs": runs}.items():
        program = to_edge(exported, compile_config=whole).to_executorch(ATEN)
        program.save(tmp_path / f"{name}.pte")
        problems = Target.load("etx").check(read_pte(tmp_path / f"{name}.pte"))
        assert {p.subject for p in problems if p.kind == "operator"} == left[name]


def test_an_operator_that_torch_lacks():
    target = Target.load("aten")
    assert "aten::add.out" in target.operators
    assert "aten::nothing_such.out" not in target.operators


def test_the_target_without_torch_is_torchs_own():
    script = (
        "import sys; from etx_kernels_aten.target import target_path; "
        "print(target_path()); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    stated = set(json.loads(Path(done.stdout.strip()).read_text())["operators"])
    assert "aten::unique_consecutive.out" in stated
    assert stated <= set(json.loads(Path(target_path()).read_text())["operators"])
