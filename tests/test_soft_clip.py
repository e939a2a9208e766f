# SPDX-License-Identifier: BSD-3-Clause
"""The template of a wheel of kernels, and a kernel in Python, on a device without torch."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT, Environment, environment

from snippets import blocks

EXAMPLES = ROOT / "examples"
TEMPLATE = EXAMPLES / "soft-clip"
MOST_LINES = 30


@pytest.fixture(scope="module")
def host() -> Environment:
    """Return a build host with the template's wheel."""
    tools = ("pytest==9.2.0", "expecttest==0.3.0", "hypothesis>=6")
    packages = ("soft-clip", "etx-exir", "etx-kernels-portable")
    return environment("soft-clip-host", *packages, also=EXAMPLES, others=tools)


@pytest.fixture(scope="module")
def device() -> Environment:
    """Return a device with the template's wheel."""
    names = ("soft-clip", "etx-kernels-portable")
    found = environment("soft-clip-device", *names, also=EXAMPLES)
    assert "torch" not in found.installed()
    return found


@pytest.fixture(scope="module")
def bare() -> Environment:
    """Return a device without the operator."""
    return environment("device", "etx-runtime", "etx-kernels-portable")


def python_blocks(page: Path) -> list[str]:
    return [block.text for block in blocks(page.read_text()) if block.language == "python"]


def test_the_template_runs_as_written(
    host: Environment, device: Environment, tmp_path: Path
) -> None:
    on_host, on_device = python_blocks(TEMPLATE / "README.md")
    host.python("-c", on_host, cwd=tmp_path)
    device.python("-c", on_device, cwd=tmp_path)


def test_the_template_is_small() -> None:
    files = [
        path for path in TEMPLATE.rglob("*") if path.suffix in {".py", ".cpp", ".json", ".toml"}
    ]
    assert len(files) == 7
    assert max(len(path.read_text().splitlines()) for path in files) < MOST_LINES


def test_its_case_runs_in_the_suite_of_kernels(host: Environment) -> None:
    library = host.python("-c", "import soft_clip; print(soft_clip.library_path())").strip()
    suite = ROOT / "packages" / "etx-kernels-portable" / "tests"
    options = ["--plugin", library, "--target", TEMPLATE / "src" / "soft_clip" / "target.json"]
    options += ["--cases", TEMPLATE / "cases.py", "-p", "no:cacheprovider"]
    options += ["-k", "test_matches_eager"]
    command = ["-m", "pytest", "--import-mode=importlib", "-q", suite / "test_ops.py"]
    assert "1 passed" in host.python(*command, *options, cwd=suite)


def test_a_kernel_in_python_as_written(
    host: Environment, bare: Environment, tmp_path: Path
) -> None:
    page = python_blocks(ROOT / "docs" / "add-an-op.md")
    (script,) = (text for text in page if text.startswith("# file: on_device.py"))
    assert len(script.splitlines()) < MOST_LINES
    before = page[: page.index(script)]
    host.python("-W", "ignore", "-c", "\n".join(before), cwd=tmp_path)
    bare.python("-c", script, cwd=tmp_path)
