# SPDX-License-Identifier: BSD-3-Clause
"""Events within delegates have the instructions that they are of."""

from __future__ import annotations

from etx_devtools.delegated import common_module, handles_of_events

IDS = {
    "Convolution @10": [7],
    "Convolution @2": [2],
    "Copy @3": [3, 4],
    "Add @1": [1],
    "Sum @11": [],
}
"""As a file has them, sorted by name; numbers are the order."""


def test_as_many_events_are_in_the_same_order() -> None:
    """Whatever the versions of a backend call them; what has no handle is left out."""
    names = [
        "Binary (ND) #1",
        "Convolution (NHWC) GEMM #1",
        "Copy #1",
        "Convolution (NHWC) #1",
        "x",
    ]
    assert handles_of_events(names, IDS) == {
        "Binary (ND) #1": [1],
        "Convolution (NHWC) GEMM #1": [2],
        "Copy #1": [3, 4],
        "Convolution (NHWC) #1": [7],
    }


def test_fused_parts_join_the_event_before() -> None:
    names = ["Add (ND) #1", "Convolution (NHWC) #1", "Convolution (NHWC) #2", "Sum #1"]
    assert handles_of_events(names, IDS) == {
        "Add (ND) #1": [1],
        "Convolution (NHWC) #1": [2, 3, 4],
        "Convolution (NHWC) #2": [7],
    }


def test_events_that_no_part_has() -> None:
    names = ["Add #1", "Pack #1", "Convolution #1", "Copy #1", "Pack #2", "Convolution #2", "Sum"]
    found = handles_of_events(names, {key: IDS[key] for key in IDS if key != "Copy @3"})
    assert found == {"Add #1": [1], "Convolution #1": [2], "Convolution #2": [7]}
    assert handles_of_events(["Other #1"], {}) == {}


def test_ids_that_the_compiler_knows() -> None:
    assert handles_of_events(["b", "c", "a"], {"a": [1], "b": [2]}) == {"a": [1], "b": [2]}


def test_the_module_that_holds_all() -> None:
    assert common_module(["layers.0.conv", "layers.0.norm"]) == "layers.0"
    assert common_module(["a", "b"]) == common_module([]) == ""
