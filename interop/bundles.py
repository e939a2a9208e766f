# SPDX-License-Identifier: BSD-3-Clause
"""Bundled programs of both sides in one process: `bundles.py FOLDER SIDE...`, imported so.

Each side bundles the same program and test cases; each verifies all files, once with right and
once with wrong expectations. Prints digests and verdicts as JSON.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


class Scaled(nn.Module):
    """Takes a tensor and numbers, returns float and integer tensors."""

    def forward(self, x: Tensor, count: int, scale: float) -> tuple[Tensor, Tensor]:
        return x * scale + count, x.argmax(-1)


def bundle(side: str, program: bytes, folder: Path, cases: list[Any]) -> bytes:
    """Return what `side` writes; theirs takes a program only from their compiler or from a file."""
    package = {"etx": "etx_executorch", "executorch": "executorch"}[side]
    parts = [
        importlib.import_module(f"{package}.devtools{name}")
        for name in ("", ".bundled_program.config", ".bundled_program.serialize")
    ]
    tools, config, serialize = parts
    path = folder / "program.pte"
    path.write_bytes(program)
    tests = [config.MethodTestCase(*case) for case in cases]
    made = tools.BundledProgram(None, [config.MethodTestSuite("forward", tests)], str(path))
    content: bytes = serialize.serialize_from_bundled_program_to_flatbuffer(made)
    return content


def verdicts(side: str, content: bytes, count: int) -> list[bool]:
    """Return for each test case whether `side` takes the outputs for the expected ones."""
    package = {"etx": "etx_executorch", "executorch": "executorch"}[side]
    binding = importlib.import_module(f"{package}.extension.pybindings.portable_lib")
    loaded = binding._load_bundled_program_from_buffer(content)
    found = []
    for case in range(count):
        try:
            loaded.verify_result_with_bundled_expected_output("forward", case, 1e-5, 1e-6)
            found.append(True)
        except RuntimeError:
            found.append(False)
    return found


def main(folder: Path, sides: list[str]) -> dict[str, Any]:
    """Return digests of the files by side and the verdicts by side and file."""
    for side in sides:
        importlib.import_module({"etx": "etx_exir", "executorch": "executorch.exir"}[side])
    from executorch.exir import to_edge

    torch.manual_seed(0)
    model, x = Scaled(), torch.randn(2, 3)
    program = to_edge(torch.export.export(model, (x, 2, 0.5))).to_executorch().buffer
    good = model(x, 2, 0.5)
    cases = [
        ([x, 2, 0.5], list(good)),
        ([x, 2, 0.5], [good[0] + 1, good[1]]),
        ([x, 2, 0.5], [good[0], good[1] + 1]),
    ]
    files = {side: bundle(side, program, folder, cases) for side in sides}
    return {
        "digests": {side: hashlib.sha256(files[side]).hexdigest() for side in sides},
        "verdicts": {
            f"{side} of {writer}'s": verdicts(side, files[writer], len(cases))
            for side in sides
            for writer in sides
        },
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2:])))
