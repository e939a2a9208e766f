# SPDX-License-Identifier: BSD-3-Clause
"""The rows of the model set, readable without torch; ``modelset.BUILDERS`` builds them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A model of the set.

    ``classes``: the arg max must agree as well. ``by_hand``: too slow for every run.
    ``refused``: a part of the error with which ExecuTorch 1.5.1's exporter refuses it. ``own``: why
    it runs with ETX's own kernels only.
    """

    name: str
    classes: bool = True
    by_hand: bool = False
    refused: str | None = None
    own: str | None = None

    @property
    def file(self) -> str:
        """The name of ETX's file: for both runtimes where there is one."""
        return "own" if self.own else "etx"


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
        Row("mask_head", classes=False, own="ExecuTorch has no kernels of torchvision::"),
    )
}

RIGHT_SEEDS = (
    4,
    7,
    9,
    11,
    13,
    16,
)  # of 24 random programs, those that ExecuTorch lowers and runs right

PLANS = ("banks", "no-input", "no-output", "no-input-no-output")
PLANNED = ("mobilenet_v3_small", "gru", "branch", "nested")

REFUSALS: dict[str, tuple[str, ...]] = {
    "while_loop is not emitted": (
        "carries_that_start_alike",
        "carries_that_start_as_constants",
        "carry_is_returned_unchanged",
        "cond_in_while",
        "fibonacci_of_integers",
        "layouts_in_branches_loops_and_state",
        "loop_counts_in_state",
        "loop_in_a_branch_in_a_loop",
        "loop_in_a_loop",
        "loop_reads_rows",
        "loop_returns_what_it_captures",
        "loop_until_a_carried_flag",
        "loop_with_constant_expressions",
        "map_in_while",
        "rotation_of_three",
        "scan_in_while",
        "swap",
        "turns_from_a_size",
        "while_in_cond",
        "while_in_map",
        "while_in_scan",
        "while_in_while",
        "associative_scan_in_while",
    ),
    "associative_scan in a nested graph is not decomposed": (
        "associative_scan_in_cond",
        "associative_scan_in_map",
        "associative_scan_in_scan",
    ),
    "a map with several results is not emitted": (
        "map_of_no_rows",
        "map_of_several",
        "map_with_branches",
    ),
    "a branch that returns an integer is not emitted": ("branch_chooses_an_integer",),
    "the bound of the input is that of the example: more rows are refused": (
        "cond_in_map",
        "map_in_cond",
        "map_in_map",
        "map_of_no_rows_of_run_time_size",
        "scan_in_a_map_in_a_branch",
        "scan_in_map",
    ),
    "a loop over rows makes at least one turn": ("scan_of_no_rows",),
}
"""What ExecuTorch 1.5.1's exporter cannot do, and the programs with control flow that need it."""

REFUSED_FLOWS = {flow: why for why, flows in REFUSALS.items() for flow in flows}
