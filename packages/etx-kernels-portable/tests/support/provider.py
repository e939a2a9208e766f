# SPDX-License-Identifier: BSD-3-Clause
"""The kernels under test: those of this package, or of any plugin (`--plugin`, `--target`)."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import etx_kernels_portable


@dataclass
class Provider:
    """A plugin, the target file that lists its operators, and `Case`s for those of its own."""

    library: str = field(default_factory=etx_kernels_portable.library_path)
    target: str = field(default_factory=etx_kernels_portable.target_path)
    cases: Path | None = None

    @property
    def is_own(self) -> bool:
        """Tell whether these are the kernels of this package, which has one for every `Case`."""
        return self.library == etx_kernels_portable.library_path()

    def rows(self) -> dict[str, Any]:
        """Return what the target file says of each operator."""
        document = json.loads(Path(self.target).read_text(encoding="utf-8"))
        found: dict[str, Any] = document["operators"]
        return found

    def own_cases(self) -> list[Any]:
        """Return `CASES` of the file with the provider's own."""
        if self.cases is None:
            return []
        spec = importlib.util.spec_from_file_location(f"cases_of_{self.cases.stem}", self.cases)
        if spec is None or spec.loader is None:
            raise ValueError(f"--cases: {self.cases} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return list(module.CASES)


PROVIDER = Provider()
