# SPDX-License-Identifier: BSD-3-Clause
"""Layers of quantized weights whose activations are float, or quantized when they come."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from case import STEP, Call, Case, in_half, int8
from torch import nn

IMAGE, IMAGES = (1, 6, 9, 7), (2, 6, 9, 7)
BATCH = torch.export.Dim("batch", max=5)
ONE_BY_ONE: dict[str, Any] = {"recipe": "dynamic", "tol": 3 * STEP}
"""Each row, or image, has its range, which is finer than that of all."""
WHOLE: dict[str, Any] = {"recipe": "dynamic", "tol": 1e-4}
"""One image has the range that the model takes."""

DYNAMIC_INT8: list[Case] = [
    *(
        int8(
            f"{recipe}_linear",
            lambda: nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 5, bias=False)),
            (3, 5, 64),
            recipe=recipe,
            tol=tol,
        )
        for recipe, tol in (
            ("dynamic", 3 * STEP),
            ("rows8", STEP),
            ("rows4", STEP),
            ("groups4", STEP),
            ("weight8", 1e-5),
            ("weight4", 1e-5),
        )
    ),
    int8("rows4_of_odd_length", lambda: nn.Linear(63, 8), (3, 63), recipe="rows4", tol=STEP),
    in_half(int8("dynamic", lambda: nn.Linear(64, 8), (3, 64), recipe="dynamic"), 3 * STEP),
    int8(
        "dynamic_apart",
        lambda: Call(lambda f, g, x: (f(x), g(x)), nn.Linear(32, 8), nn.Linear(32, 5)),
        (3, 5, 32),
        **ONE_BY_ONE,
    ),
    int8(
        "dynamic_shared",
        lambda: Call(lambda f, g, x: f(x) + g(x), nn.Linear(32, 8), nn.Linear(32, 8)),
        (3, 5, 32),
        **ONE_BY_ONE,
    ),
    *(
        int8(f"dynamic_{name}", make, shape, **WHOLE)
        for name, make, shape in (
            ("conv2d", partial(nn.Conv2d, 6, 8, 3, padding=1), IMAGE),
            ("conv2d_same", partial(nn.Conv2d, 6, 8, 3, padding="same", bias=False), IMAGE),
            ("conv2d_strided", partial(nn.Conv2d, 6, 8, 3, 2, dilation=2), IMAGE),
            ("conv2d_grouped", partial(nn.Conv2d, 6, 8, 3, groups=2), IMAGE),
            ("conv2d_of_one_channel", partial(nn.Conv2d, 1, 8, 3), (1, 1, 9, 7)),
            ("conv1d", partial(nn.Conv1d, 6, 8, 3), (1, 6, 11)),
            ("conv_transpose1d", partial(nn.ConvTranspose1d, 6, 8, 3), (1, 6, 11)),
            ("conv_transpose2d", partial(nn.ConvTranspose2d, 6, 8, 3, 2, 1, 1), IMAGE),
            ("conv_transpose2d_grouped", partial(nn.ConvTranspose2d, 6, 8, 3, groups=2), IMAGE),
            ("conv_transpose2d_apart", partial(nn.ConvTranspose2d, 6, 6, 3, groups=6), IMAGE),
        )
    ),
    int8(
        "dynamic_conv2d_of_tensor",
        partial(nn.Conv2d, 6, 8, 3),
        IMAGES,
        recipe="dynamic_of_tensor",
        tol=3 * STEP,
    ),
    int8(
        "dynamic_conv2d_of_any_batch",
        lambda: nn.Sequential(nn.Conv2d(6, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)),
        IMAGES,
        dynamic=({0: BATCH},),
        calls=[[IMAGE], [(5, 6, 9, 7)]],
        **ONE_BY_ONE,
    ),
    int8(
        "dynamic_convolutions_of_one_image",
        lambda: Call(lambda f, g, x: f(x) + g(x), nn.Conv2d(6, 8, 3), nn.Conv2d(6, 8, 3)),
        IMAGE,
        **WHOLE,
    ),
    int8(
        "dynamic_image_and_rows",
        lambda: Call(lambda f, g, x: (f(x), g(x)), nn.Conv2d(6, 8, 3), nn.Linear(7, 5)),
        IMAGE,
        **ONE_BY_ONE,
    ),
    in_half(int8("dynamic_conv2d", lambda: nn.Conv2d(6, 8, 3), IMAGE, recipe="dynamic"), STEP),
]
