# SPDX-License-Identifier: BSD-3-Clause
"""`etx verify`: the verdicts as text, JSON and JUnit's XML."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from etx_schema.errors import naming
from etx_schema.files import write_atomically

from etx_devtools.bundled_program.core import BundledProgram
from etx_devtools.bundled_program.verify import Tolerance, Verdict, verify

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def report(options: argparse.Namespace) -> int:
    """Verify, print, and return 1 when an output is not as expected."""
    with naming(options.file):
        rows = verify(
            BundledProgram.load(options.file),
            method=options.method,
            case=options.case,
            tolerance=_tolerance(options.atol, options.rtol),
            data=options.data,
        )
    failed = sum(not row.passed for row in rows)
    if options.junit:
        write_atomically(options.junit, [junit(options.file, rows)])
    if options.json:
        print(json.dumps(document(options.file, rows), indent=1))
    else:
        for row in rows:
            print(_line(row))
        cases = len({(row.method, row.case) for row in rows})
        print(f"{cases} test case{'s' * (cases != 1)}: {_summary(rows, failed)}")
    return 1 if failed else 0


def document(file: str, rows: Sequence[Verdict]) -> dict[str, Any]:
    """Return what `--json` prints; infinite and undefined numbers are text."""
    passed = all(row.passed for row in rows)
    found = [{key: _plain(value) for key, value in row.as_dict().items()} for row in rows]
    return {"file": file, "passed": passed, "rows": found}


def _plain(value: Any) -> Any:
    if isinstance(value, complex) or (isinstance(value, float) and value - value != 0):
        return str(value)
    return value


def junit(file: str, rows: Sequence[Verdict]) -> bytes:
    """Return the rows as JUnit's XML: a suite for each method, a test case for each output."""
    root = ElementTree.Element("testsuites")
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method]
        failures = sum(not row.passed for row in own)
        names = {"name": _text(method), "tests": str(len(own)), "failures": str(failures)}
        suite = ElementTree.SubElement(root, "testsuite", names)
        for row in own:
            name = f"case {row.case}" + (f", output {row.output}" if row.output >= 0 else "")
            where = {"classname": _text(f"{file}.{method}"), "name": name}
            element = ElementTree.SubElement(suite, "testcase", where)
            if not row.passed:
                ElementTree.SubElement(element, "failure", {"message": _text(row.reason)})
            elif not row.compared:
                ElementTree.SubElement(element, "skipped", {"message": _text(row.reason)})
    content: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return content


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _tolerance(atol: Sequence[Any], rtol: Sequence[Any]) -> Tolerance:
    common = [1e-5, 1e-5]
    special: dict[int, list[float | None]] = {}
    for place, given in enumerate((atol, rtol)):
        for output, number in given:
            if output is None:
                common[place] = number
            else:
                special.setdefault(output, [None, None])[place] = number
    by_output = {output: (pair[0], pair[1]) for output, pair in special.items()}
    return Tolerance(common[0], common[1], by_output)


def _line(row: Verdict) -> str:
    place = f"{row.method}, case {row.case}" + (f", output {row.output}" if row.output >= 0 else "")
    if not row.compared:
        return f"ran     {place}: {row.reason}"
    if row.max_abs is None:
        return f"{_word(row)}  {place}{': ' * bool(row.reason)}{row.reason}"
    text = f"max abs {row.max_abs:.3g}, rel {row.max_rel:.3g} at {list(row.at)}"
    text += f" ({row.got:.6g}, expected {row.expected:.6g})"
    text += f"; allowed {row.atol:g} + {row.rtol:g} of the expected"
    return f"{_word(row)}  {place}: {text}" + (f"; {row.reason}" if row.reason else "")


def _word(row: Verdict) -> str:
    return "passed" if row.passed else "FAILED"


def _summary(rows: Sequence[Verdict], failed: int) -> str:
    silent = sum(not row.compared for row in rows)
    compared = len(rows) - silent
    parts = [f"{compared - failed} of {compared} outputs as expected"] if compared else []
    if silent:
        parts.append(f"{silent} only run, without expected outputs")
    return ", ".join(parts)
