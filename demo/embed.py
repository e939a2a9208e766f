# SPDX-License-Identifier: BSD-3-Clause
"""On the device: `python demo/embed.py FOLDER` runs minilm.pte, without torch."""

from __future__ import annotations

import importlib.util
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import etx_runtime
import numpy as np
from etx_devtools.report import document, page
from etx_devtools.report.measure import measure
from etx_schema import read_pte
from sentences import QUERY, SENTENCES
from tokenizers import Tokenizer

FILES = {"float32": "minilm.pte", "int8": "minilm_int8.pte"}
TOLERANCE = {"float32": 1e-3, "int8": 0.2}
"""Of the largest value."""


@dataclass
class Run:
    """What one file gives: an embedding of length one for each text, and what it took."""

    embeddings: np.ndarray
    latency: list[tuple[int, float]]
    load: float
    path: Path

    def rank(self) -> np.ndarray:
        """Return how near each sentence is to the query, the last of the texts."""
        return self.embeddings[:-1] @ self.embeddings[-1]

    def arena(self) -> int:
        """Return the bytes of planned memory that `forward` asks for."""
        plan = read_pte(self.path).program.execution_plan[0]
        return sum(plan.non_const_buffer_sizes)


def run(path: Path, texts: list[np.ndarray]) -> Run:
    start = time.perf_counter()
    model = etx_runtime.load(path)
    load = time.perf_counter() - start
    embeddings, rows = [], []
    for tokens in texts:
        model(tokens)
        start = time.perf_counter()
        embeddings.append(np.asarray(model(tokens))[0])
        rows.append((tokens.shape[1], (time.perf_counter() - start) * 1e3))
    return Run(np.stack(embeddings), sorted(rows), load, path)


def differs(name: str, found: Run, eager: np.ndarray) -> bool:
    """Say how far `found` is from eager; tell whether that is more than it may be."""
    error, largest = np.abs(found.embeddings - eager).max(), np.abs(eager).max()
    likeness = (found.embeddings * eager).sum(1).min()
    print(f"{name}")
    print(f"  largest difference to eager  {error:.1e} of {largest:.2f}; cosine {likeness:.4f}")
    print("  latency                      ", end="")
    print(", ".join(f"{ms:.1f} ms ({n} tokens)" for n, ms in found.latency))
    print(f"  load                         {found.load * 1e3:.1f} ms")
    print(f"  peak arena                   {found.arena() / 1e6:.2f} MB, planned for 512 tokens")
    print(f"  file                         {found.path.stat().st_size / 1e6:.2f} MB")
    return bool(error > TOLERANCE[name] * largest)


def report(folder: Path, tokens: np.ndarray) -> None:
    """Write the page of the float32 file and print what stands out."""
    np.savez(folder / "tokens.npz", tokens)
    path, html = folder / FILES["float32"], folder / "report.html"
    found = document(path, measure(str(path), [str(folder / "tokens.npz")]))
    html.write_text(page(found))
    print(f"{html}: {html.stat().st_size / 1e3:.0f} kB to look at in a browser; in it")
    for line in found["advice"][:3]:
        print(f"  {line}")


def main(folder: Path) -> int:
    if importlib.util.find_spec("torch") is not None:
        print("torch can be imported here; this half of the demo is to show that none is needed")
        return 1
    print("device: no torch, no compiler", flush=True)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    texts = [np.array([tokenizer.encode(text).ids]) for text in (*SENTENCES, QUERY)]
    runs = {name: run(folder / file, texts) for name, file in FILES.items()}
    print(f"\n{QUERY}\n{''.join(f'{name:>8}' for name in runs)}")
    scores = {name: found.rank() for name, found in runs.items()}
    for i in np.argsort(-scores["float32"]):
        print("".join(f"  {each[i]:6.3f}" for each in scores.values()), SENTENCES[i][:76])
    eager = np.load(folder / "eager.npz")["embeddings"]
    far = [name for name, found in runs.items() if differs(name, found, eager)]
    if far:
        print(f"further from eager than {TOLERANCE} of its largest value: {', '.join(far)}")
    times = [sum(ms for _, ms in found.latency) for found in runs.values()]
    sizes = [found.path.stat().st_size for found in runs.values()]
    print(f"int8: {times[0] / times[1]:.1f} times as fast, {sizes[1] / sizes[0]:.0%} of the size")
    report(folder, max(texts, key=np.size))
    return bool(far)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
