# SPDX-License-Identifier: BSD-3-Clause
"""`etx` knows which package brings each command, installed or not."""

from __future__ import annotations

import ast
import re

from conftest import ROOT

from projects import load_projects

CONTRIBUTED = ROOT / "packages/etx-schema/src/etx_schema/commands/contributed.py"


def known() -> dict[str, str]:
    """Return the table of the command line, unexecuted."""
    for node in ast.parse(CONTRIBUTED.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ELSEWHERE":
            found: dict[str, str] = ast.literal_eval(node.value)
            return found
    raise AssertionError(f"{CONTRIBUTED} has no table ELSEWHERE")


def test_the_table_is_what_the_packages_offer() -> None:
    offered = {}
    for name in load_projects(ROOT):
        text = (ROOT / "packages" / name / "pyproject.toml").read_text()
        for section in re.findall(
            r'^\[project.entry-points."etx.commands"\]\n((?:.+\n)*)', text, re.M
        ):
            offered |= {line.split(" = ")[0]: name for line in section.splitlines()}
    assert {command: packages.split()[0] for command, packages in known().items()} == offered
    assert {each for packages in known().values() for each in packages.split()} <= set(
        load_projects(ROOT)
    )
