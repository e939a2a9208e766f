# SPDX-License-Identifier: BSD-3-Clause
"""A number that an option cannot be is refused where it is read; what ran out is named."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest
from etx_schema import cli
from etx_schema.numbers import real, whole


@pytest.mark.parametrize("text", ["-1", "0", "", "1.5", "nan", "9" * 5000, "one"])
def test_not_a_whole_number(text):
    with pytest.raises(ArgumentTypeError, match="expected a whole number from 1, got '"):
        whole(1)(text)


def test_numbers():
    assert [whole(0)("0"), whole(1)("17"), real(0)("1e-3"), real()("-2")] == [0, 17, 1e-3, -2.0]


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1", "", "1,5"])
def test_not_a_number(text):
    with pytest.raises(ArgumentTypeError, match="expected a number from 0, got '"):
        real(0)(text)
    for finite in {"nan", "inf", ""} & {text}:
        with pytest.raises(ArgumentTypeError, match="expected a number, got '"):
            real()(finite)


@pytest.mark.parametrize(("words", "said"), [((), "for this"), (("3 TB",), "3 TB")])
def test_no_memory_names_what_it_was_for(etx, monkeypatch, words, said):
    def run(options):
        raise MemoryError(*words)

    monkeypatch.setattr(cli, "_run", run)
    assert etx("show", "m.pte") == (2, "", f"etx: there is not enough memory ({said})\n")


@pytest.mark.parametrize("command", ["show", "check", "memory"])
def test_an_empty_name_is_not_a_folder(etx, command):
    assert etx(command, "") == (2, "", "etx: cannot read '': the name is empty; give one\n")
