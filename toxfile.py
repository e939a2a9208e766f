# SPDX-License-Identifier: BSD-3-Clause
"""An environment for each folder of packages/: `tox -e runtime` tests etx-runtime."""

from __future__ import annotations

from pathlib import Path

from tox.plugin import impl

PREFIX = "etx-"


@impl
def tox_extend_envs() -> tuple[str, ...]:
    """Name the environments; tox.ini says what each of them does."""
    folders = (Path(__file__).parent / "packages").glob(f"{PREFIX}*/pyproject.toml")
    return tuple(sorted(path.parent.name.removeprefix(PREFIX) for path in folders))
