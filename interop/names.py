# SPDX-License-Identifier: BSD-3-Clause
"""The rows of the model set, readable without torch; ``modelset.BUILDERS`` builds them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A model of the set.

    ``classes``: the arg max must agree as well. ``by_hand``: too slow for every run.
    ``refused``: a part of the error with which ExecuTorch 1.5.1's exporter refuses it.
    """

    name: str
    classes: bool = True
    by_hand: bool = False
    refused: str | None = None


ROWS = {
    row.name: row
    for row in (
        Row("resnet18"),
        Row("mobilenet_v2"),
        Row("mobilenet_v3_small"),
        Row("efficientnet_b0"),
        Row("deit_tiny"),
        Row("vit_b_16", by_hand=True),
        Row("unet", classes=False),
        Row("minilm", classes=False),
        Row("decoder"),
        Row("lstm"),
        Row("gru"),
        Row("crepe"),
        Row("branch", classes=False),
        Row("nested", classes=False),
    )
}

PLANS = ("banks", "no-input", "no-output", "no-input-no-output")
PLANNED = ("mobilenet_v3_small", "gru", "branch", "nested")
