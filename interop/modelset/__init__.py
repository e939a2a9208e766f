# SPDX-License-Identifier: BSD-3-Clause
"""How every row of the model set is built."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import nn

from . import control_flow, detector, sequence, structure, text, vision
from .built import Built

BUILDERS: dict[str, Callable[[], Built]] = {
    "resnet18": vision.torchvision_model("resnet18"),
    "mobilenet_v2": vision.torchvision_model("mobilenet_v2"),
    "mobilenet_v3_small": vision.torchvision_model("mobilenet_v3_small"),
    "efficientnet_b0": vision.torchvision_model("efficientnet_b0"),
    "deit_tiny": vision.timm_model("deit_tiny_patch16_224"),
    "vit_b_16": vision.torchvision_model("vit_b_16"),
    "unet": vision.unet,
    "minilm": text.minilm,
    "decoder": sequence.decoder,
    "lstm": partial(sequence.recurrent, nn.LSTM),
    "gru": partial(sequence.recurrent, nn.GRU),
    "crepe": sequence.crepe,
    "branch": structure.branch,
    "nested": structure.nested,
    "chain": structure.chain,
    "mask_head": detector.mask_head,
    "swin_t": vision.torchvision_model("swin_t"),
    "densenet121": vision.torchvision_model("densenet121"),
}


def build(name: str) -> Built:
    """Build a model of the set, or a program with control flow by its name."""
    return BUILDERS[name]() if name in BUILDERS else control_flow.build(name)


__all__ = ["BUILDERS", "Built", "build"]
