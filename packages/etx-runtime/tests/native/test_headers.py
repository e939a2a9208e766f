# SPDX-License-Identifier: BSD-3-Clause
"""Public headers say what each type and each function of the C interface is for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import etx_runtime
import pytest
from etx_schema.dtypes import DTYPES

INCLUDE = Path(etx_runtime.__file__).parent / "include" / "etx"
TYPE = re.compile(
    r"(?:typedef )?(?:class|struct|enum class|enum) "
    r"(?:\[\[nodiscard\]\] )?(\w+)( final)?( :.*)? \{$"
)
FUNCTION = re.compile(r"ETX_API .*?\b(etx_\w+)\(")


def undocumented(text: str) -> Iterator[str]:
    """Yield what no comment precedes; functions without a blank line between them share one."""
    lines = re.sub(r"^namespace detail \{.*?^\}", "", text, flags=re.M | re.S).splitlines()
    is_documented = False
    for number, line in enumerate(lines):
        if line.startswith("///") or not line:
            is_documented = bool(line)
        elif TYPE.match(line):
            above = number - 1
            while lines[above].startswith("template"):
                above -= 1
            if not lines[above].startswith("///"):
                yield line
        elif FUNCTION.match(line) and not is_documented:
            yield line


@pytest.mark.parametrize(
    "header", sorted(INCLUDE.rglob("*.h")), ids=lambda path: str(path.relative_to(INCLUDE))
)
def test_is_documented(header: Path) -> None:
    assert list(undocumented(header.read_text())) == []


def test_finds_what_is_undocumented() -> None:
    text = "/// A.\nclass A {\n};\n\nstruct B final : A {\n};\n\nETX_API int etx_c(void);\n"
    assert list(undocumented(text)) == ["struct B final : A {", "ETX_API int etx_c(void);"]


def braces(header: str, before: str) -> str:
    """Return what stands in the braces that follow `before`."""
    return (INCLUDE / header).read_text().partition(before)[2].partition("{")[2].partition("}")[0]


def test_element_types_are_numbered_as_in_the_schema() -> None:
    numbers = range(len(DTYPES))
    members = re.findall(r"(\w+) = (\d+),", braces("dtype.h", "enum class ScalarType"))
    assert [int(number) for _, number in members] == list(numbers) == list(DTYPES)
    names = re.findall(r'"(\w+)"', braces("dtype.h", "kNames[kNumScalarTypes]"))
    sizes = re.findall(r"\d+", braces("dtype.h", "kElementSizes[kNumScalarTypes]"))
    assert list(zip(names, map(int, sizes), strict=True)) == list(DTYPES.values())
    for name, number in re.findall(r"ETX_(\w+) = (\d+)", braces("etx.h", "enum etx_dtype")):
        assert DTYPES[int(number)][0] == name.lower()
