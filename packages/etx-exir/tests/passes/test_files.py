# SPDX-License-Identifier: BSD-3-Clause
"""A pass is a file that starts with its equation and has a test file named after it."""

from importlib import import_module
from pathlib import Path

import etx_exir.passes
import pytest
from etx_exir.passes import PIPELINE
from etx_exir.passes.fit import fitting
from etx_exir.passes.fuse import WHOLE
from etx_exir.passes.integer import INTEGER
from etx_exir.passes.narrow import NARROW

HERE, FOLDER = Path(__file__).parent, Path(etx_exir.passes.__file__).parent
FILES = {
    ".".join((*path.parent.relative_to(FOLDER).parts, path.stem)): path
    for path in FOLDER.rglob("*.py")
    if path.stem not in ("__init__", "base")
}


def test_the_folder_holds_passes_only():
    run = (*PIPELINE, *fitting({}), *INTEGER, *WHOLE, *NARROW)
    assert {f"etx_exir.passes.{name}" for name in FILES} == {type(p).__module__ for p in run}


@pytest.mark.parametrize("name", FILES)
def test_pass_has_an_equation_and_a_test_file(name):
    assert import_module(f"etx_exir.passes.{name}").__doc__.startswith("``")
    *folders, stem = name.split(".")
    assert (HERE.joinpath(*folders) / f"test_{stem}.py").is_file()
