# SPDX-License-Identifier: BSD-3-Clause
"""On the device, without torch: `python run.py FOLDER` compares programs with eager mode.

It then damages the delegates' blobs: each is refused, or computes something, and harms nobody.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import etx_runtime
import numpy as np
from etx_schema import EtxError, read_pte, serialize_pte

DAMAGED = 1500


def calls(path: Path) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """Return inputs and outputs of each call."""
    arrays = np.load(path)
    found = []
    while any(name.startswith(f"{len(found)}_in") for name in arrays):
        pick = [
            [arrays[n] for n in sorted(arrays) if n.startswith(f"{len(found)}_{kind}")]
            for kind in ("in", "out")
        ]
        found.append((pick[0], pick[1]))
    return found


def compare(folder: Path) -> int:
    """Run every program of `folder`; return how many outputs were compared."""
    compared = 0
    for path in sorted(folder.glob("*.pte")):
        model = etx_runtime.load(path)
        for inputs, expected in calls(path.with_suffix(".npz")):
            results = model(*inputs)
            results = results if isinstance(results, tuple) else (results,)
            for result, reference in zip(results, expected, strict=True):
                np.testing.assert_allclose(np.asarray(result), reference, rtol=1e-5, atol=1e-6)
                compared += 1
    return compared


def damage(folder: Path) -> tuple[int, int]:
    """Return how many damaged programs were refused, and how many ran all the same."""
    chance = random.Random(0)
    refused = ran = 0
    paths = sorted(folder.glob("*.pte"))
    for i in range(DAMAGED):
        path = paths[i % len(paths)]
        pte = read_pte(path.read_bytes())
        which = chance.randrange(len(pte.delegates))
        blob = bytearray(pte.delegates[which])
        for _ in range(chance.choice((1, 1, 2, 5))):
            blob[chance.randrange(len(blob))] = chance.choice((0, 1, 255, chance.randrange(256)))
        if chance.random() < 0.2:
            del blob[chance.randrange(len(blob)) :]
        pte.delegates[which] = bytes(blob)
        try:
            etx_runtime.load(serialize_pte(pte))(*calls(path.with_suffix(".npz"))[0][0])
            ran += 1
        except EtxError:
            refused += 1
    return refused, ran


if __name__ == "__main__":
    print(f"{compare(Path(sys.argv[1]))} outputs equal eager mode's")
    refused, ran = damage(Path(sys.argv[1]))
    print(f"{DAMAGED} damaged programs: {refused} refused, {ran} ran")
