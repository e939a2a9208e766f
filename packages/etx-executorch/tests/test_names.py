# SPDX-License-Identifier: BSD-3-Clause
"""Every row of both tables: what is there is found, what is not says so in one sentence."""

import importlib
import subprocess
import sys

import pytest
from etx_executorch.absent import ABSENT
from etx_executorch.finder import EVERYTHING, find, is_module
from etx_executorch.names import NAMES

ROWS = [(module, name) for module, names in NAMES.items() for name in names if name != EVERYTHING]


def test_every_name_is_found():
    for module, name in ROWS:
        assert find(f"etx_executorch.{module}", name) is not None, (module, name)


def test_modules_can_be_imported_and_listed():
    for module in NAMES:
        found = importlib.import_module(f"etx_executorch.{module}")
        assert set(NAMES[module]) - {EVERYTHING} <= set(dir(found))


@pytest.mark.parametrize("path", ABSENT)
def test_what_is_absent_says_what_to_use_instead(path):
    module, _, name = f"etx_executorch.{path}".rpartition(".")
    if is_module(path):
        module, name = f"etx_executorch.{path}", "nothing_of_this_name"
    with pytest.raises(ImportError) as caught:
        exec(f"from {module} import {name}")
    message = str(caught.value)
    assert message.startswith(f"etx_executorch.{path}")
    assert message.endswith(ABSENT[path])
    assert len(message.splitlines()) == 1
    assert not message.endswith(".")


def test_a_module_that_is_absent_says_so_when_imported():
    with pytest.raises(ImportError, match=r"backends\.qualcomm: this backend cannot be lowered"):
        exec(
            "from etx_executorch.backends.qualcomm.partition.qnn_partitioner import QnnPartitioner"
        )
    with pytest.raises(ImportError, match="language models"):
        importlib.import_module("etx_executorch.extension.llm.export.config.llm_config")


def test_other_names_are_import_errors():
    with pytest.raises(ImportError, match="no counterpart"):
        exec("from etx_executorch.exir import something_else")


def test_importing_it_imports_nothing_else():
    code = (
        "import sys, etx_executorch.exir, etx_executorch.runtime;"
        "print([m for m in ('torch', 'etx_exir', 'etx_runtime') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_a_name_needs_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "etx_runtime", None)
    for name in [m for m in sys.modules if m.startswith("etx_executorch.adapters.runtime")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match="pip install etx-runtime etx-kernels-portable"):
        find("etx_executorch.runtime", "Runtime")
