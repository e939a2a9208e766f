# SPDX-License-Identifier: BSD-3-Clause
"""On the device: `python demo/embed.py FOLDER` runs minilm.pte, without torch."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import etx_runtime
import numpy as np
from etx_schema import read_pte
from sentences import QUERY, SENTENCES
from tokenizers import Tokenizer

TOLERANCE = 1e-3


def peak_arena(path: Path) -> int:
    """Return the bytes of planned memory `forward` asks for."""
    plan = read_pte(path).program.execution_plan[0]
    return sum(plan.non_const_buffer_sizes)


def main(folder: Path) -> int:
    if importlib.util.find_spec("torch") is not None:
        print("torch can be imported here; this half of the demo is to show that none is needed")
        return 1
    print("device: no torch, no compiler", flush=True)
    path = folder / "minilm.pte"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    start = time.perf_counter()
    model = etx_runtime.load(path)
    loaded = time.perf_counter() - start
    embeddings, rows = [], []
    for text in (*SENTENCES, QUERY):
        tokens = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        model(tokens)
        start = time.perf_counter()
        embeddings.append(np.asarray(model(tokens))[0])
        rows.append((tokens.shape[1], (time.perf_counter() - start) * 1e3))
    ours = np.stack(embeddings)
    print(f"\n{QUERY}")
    scores = ours[:-1] @ ours[-1]
    for i in np.argsort(-scores):
        print(f"  {scores[i]:6.3f}  {SENTENCES[i][:76]}")
    eager = np.load(folder / "eager.npz")["embeddings"]
    error, largest = np.abs(ours - eager).max(), np.abs(eager).max()
    print(f"\nlargest difference to eager  {error:.1e} of {largest:.2f}")
    print("latency                      ", end="")
    print(", ".join(f"{ms:.1f} ms ({n} tokens)" for n, ms in sorted(rows)))
    print(f"load                         {loaded * 1e3:.1f} ms")
    print(f"peak arena                   {peak_arena(path) / 1e6:.2f} MB, planned for 512 tokens")
    print(f"file                         {path.stat().st_size / 1e6:.2f} MB")
    if not error <= TOLERANCE * largest:
        print(f"the difference is above {TOLERANCE:g} of eager's largest value")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
