# SPDX-License-Identifier: BSD-3-Clause
"""Operators of models in all dtypes: ETX next to torch, onnxruntime, XNNPACK and ExecuTorch.

One thread. Peers run in turns in one process; a figure is the least time of a call, in µs, and
all results agree with eager's. A peer that has no such operator, or is not installed, has none. The
peak is measured first: multiplications and additions of floats (of float64 their own) for products,
bytes copied within a cache for all others; narrow integers may be above it. ETX's time is that of
the execution, onnxruntime's inputs and outputs are bound, ExecuTorch's time is that of `execute` in
Python.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from etx_exir import to_edge_transform_and_lower
from etx_exir.errors import EtxError
from etx_runtime import Runtime, set_num_threads
from sweep_cases import DTYPES, Case, cases
from sweep_others import other_cases

HERE = Path(__file__).parent
PEERS = ("etx", "torch", "onnxruntime", "xnnpack", "executorch")
TURN, LONG = 0.01, 0.05
TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float64": 1e-10}


class Call:
    """An operator of a peer, and how it is timed."""

    def __init__(self, once: Callable[[], Any], several: Callable[[int], float] | None = None):
        self.once = once
        self.several = several or self._least

    def _least(self, count: int) -> float:
        least = float("inf")
        for _ in range(count):
            begin = time.perf_counter()
            self.once()
            least = min(least, time.perf_counter() - begin)
        return least


@dataclass
class Row:
    """A case: the µs of each peer, ETX's share of the peak, and why a peer has none."""

    name: str
    dtype: str
    us: dict[str, float]
    share: float
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """ETX's time over that of the best peer."""
        others = [value for peer, value in self.us.items() if peer != "etx"]
        return self.us["etx"] / min(others) if others and "etx" in self.us else None


class Peak:
    """What one core can do."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "peak.so"
            source = HERE / "native" / "float_peak.cpp"
            flags = ("-std=c++17", "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")
            subprocess.run(["c++", *flags, source, "-o", library], check=True)
            made = ctypes.CDLL(str(library))
        for name in ("float_flops", "double_flops", "copied_bytes"):
            getattr(made, name).restype = ctypes.c_double
        self.flops = {"float64": made.double_flops()}
        self.single, self.bytes = made.float_flops(), made.copied_bytes()

    def share(self, case: Case, outputs: list[np.ndarray], seconds: float) -> float:
        """Return which part of the peak of its dtype a call reached."""
        if case.flop is not None:
            return case.flop / seconds / self.flops.get(case.dtype, self.single)
        moved = sum(x.nbytes for x in (*case.inputs, *outputs))
        return moved / seconds / self.bytes


def etx(case: Case, exported: Any) -> Call:
    """Return a call of ETX's own kernels."""
    program = to_edge_transform_and_lower(exported).to_executorch()
    return on_etx(program.buffer, case)


def on_etx(content: bytes, case: Case) -> Call:
    method = Runtime.get().load_program(content).load_method("forward")
    once = method.flat_caller(borrow=True)
    arrays = [as_array(x) for x in case.inputs]
    return Call(
        lambda: once(*arrays), lambda count: min(method.time_executions(arrays, count)) / 1e9
    )


def as_array(x: torch.Tensor) -> Any:
    """Return what a runtime borrows: an array, or a tensor where numpy has no such dtype."""
    return x.contiguous() if x.dtype is torch.bfloat16 else np.ascontiguousarray(x.numpy())


def eager(case: Case, exported: Any) -> Call:
    """Return a call of torch in eager mode."""
    return Call(lambda: case.module(*case.inputs))


def on_onnxruntime(case: Case, exported: Any) -> Call | str:
    """Return a call of onnxruntime, inputs and output bound, or why there is none."""
    import onnxruntime

    if case.dtype == "bfloat16":
        return "numpy has no bfloat16 to give it"
    file = io.BytesIO()
    names = [f"x{i}" for i in range(len(case.inputs))]
    form = {"dynamo": False, "opset_version": 18, "input_names": names}
    torch.onnx.export(case.module, case.inputs, file, **form)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(file.getvalue(), options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    for given in session.get_inputs():  # those that are read
        array = case.inputs[names.index(given.name)].numpy()
        binding.bind_cpu_input(given.name, np.ascontiguousarray(array))
    for made in session.get_outputs():
        binding.bind_output(made.name)

    def once() -> Any:
        session.run_with_iobinding(binding)
        return binding

    return Call(once)


def xnnpack(case: Case, exported: Any) -> Call | str:
    """Return a call of the operator in XNNPACK as it is delegated, or why there is none."""
    from etx_backend_xnnpack.partition import XnnpackPartitioner
    from etx_exir.delegation.info import get_delegation_info

    edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    info = get_delegation_info(edge.exported_program().graph_module)
    if info.num_delegated_subgraphs == 0:
        return "XNNPACK does not take it"
    return on_etx(edge.to_executorch().buffer, case)


def on_executorch(case: Case, exported: Any) -> Call:
    """Return a call of ExecuTorch's portable kernels, from a file of its own exporter."""
    from executorch.exir import to_edge
    from executorch.runtime import Runtime as Theirs

    content = to_edge(exported).to_executorch().buffer
    program = Theirs.get().load_program(content)
    held = (program, program.load_method("forward"))  # a method reads its program
    inputs = [x.contiguous() for x in case.inputs]
    return Call(lambda: held[1].execute(inputs))


SIDES: dict[str, Callable[[Case, Any], Call | str]] = {
    "etx": etx,
    "torch": eager,
    "onnxruntime": on_onnxruntime,
    "xnnpack": xnnpack,
    "executorch": on_executorch,
}


def results(made: Any) -> list[np.ndarray]:
    """Return what a call gave as arrays."""
    if hasattr(made, "copy_outputs_to_cpu"):
        return list(made.copy_outputs_to_cpu())
    several = made if isinstance(made, (list, tuple)) else [made]
    return [
        (x.float() if x.dtype is torch.bfloat16 else x).detach().numpy()
        if isinstance(x, torch.Tensor)
        else np.asarray(x)
        for x in several
    ]


def agree(case: Case, got: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    """Tell whether a peer computed what eager did."""
    tolerance = TOLERANCE.get(case.dtype, 1e-3)
    for one, other in zip(got, expected, strict=True):
        if one.shape != other.shape:
            return False
        a, b = one.astype(np.float64), other.astype(np.float64)
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(b).max()))):
            return False
    return True


def in_turns(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """Return the least seconds of a call of each; of a call of many turns there are three."""
    least = {peer: call.several(1) for peer, call in calls.items()}
    least |= {peer: calls[peer].several(2) for peer, once in least.items() if once <= LONG}
    counts = {peer: max(2, min(1000, int(TURN / once))) for peer, once in least.items()}
    for i in range(rounds):
        order = [peer for peer in calls if least[peer] <= LONG or i == 0]
        for peer in order if i % 2 == 0 else order[::-1]:
            least[peer] = min(least[peer], calls[peer].several(counts[peer]))
    return least


def measure(case: Case, peers: list[str], peak: Peak, rounds: int) -> Row | None:
    """Prepare each peer, compare, time; None where eager has no such operator."""
    try:
        expected = results(case.module(*case.inputs))
    except RuntimeError:  # torch has no kernel for the dtype
        return None
    exported = torch.export.export(case.module, case.inputs)
    calls: dict[str, Call] = {}
    missing: dict[str, str] = {}
    for peer in peers:
        try:
            call = SIDES[peer](case, exported)
            if isinstance(call, str):
                missing[peer] = call
                continue
            got = results(call.once())
        except Exception as error:
            # Exporters and sessions of peers raise types of their own; the reason is in the JSON.
            if peer in ("etx", "xnnpack") and not isinstance(error, EtxError):
                raise
            missing[peer] = f"{type(error).__name__}: {error}".splitlines()[0][:160]
            continue
        if agree(case, got, expected):
            calls[peer] = call
        else:
            missing[peer] = "other results than eager's"
    seconds = in_turns(calls, rounds)
    share = peak.share(case, expected, seconds["etx"]) if "etx" in seconds else 0.0
    return Row(case.name, case.dtype, {p: s * 1e6 for p, s in seconds.items()}, share, missing)


def tables(rows: list[Row], peers: list[str]) -> Iterator[str]:
    """Yield lines of Markdown: a table for each dtype, then means and the worst ten."""
    for dtype in dict.fromkeys(row.dtype for row in rows):
        columns = [*peers, "of the best", "of the peak"]
        yield from ("", f"## {dtype}", "", "| | " + " | ".join(columns) + " |")
        yield "| --- |" + " ---: |" * len(columns)
        for row in rows:
            if row.dtype == dtype:
                cells = [f"{row.us[p]:.1f}" if p in row.us else "" for p in peers]
                ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
                yield f"| {row.name} | {' | '.join(cells)} | {ratio} | {row.share:.2f} |"
    yield from ("", "## ETX's time over each peer's, geometric mean", "")
    yield "| | " + " | ".join(peers[1:]) + " |"
    yield "| --- |" + " ---: |" * (len(peers) - 1)
    for dtype in dict.fromkeys(row.dtype for row in rows):
        cells = []
        for peer in peers[1:]:
            pairs = [r.us["etx"] / r.us[peer] for r in rows if r.dtype == dtype and peer in r.us]
            cells.append(f"{statistics.geometric_mean(pairs):.2f} of {len(pairs)}" if pairs else "")
        yield f"| {dtype} | {' | '.join(cells)} |"
    yield from ("", "## The ten slowest next to the best peer", "", "| | dtype | ratio |")
    yield "| --- | --- | ---: |"
    rated = [row for row in rows if row.ratio is not None]
    for row in sorted(rated, key=lambda row: -(row.ratio or 0))[:10]:
        yield f"| {row.name} | {row.dtype} | {row.ratio:.2f} |"


def main() -> int:
    """Measure, print the tables, write JSON; fail where ETX's results are not eager's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=HERE.parent / ".build" / "sweep.json")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--every", action="store_true", help="a case of each other operator, too")
    parser.add_argument("words", nargs="*", help="only rows whose name has one of them")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    set_num_threads(1)
    peers = list(dict.fromkeys(("etx", *options.peers)))
    peak, rows = Peak(), []
    with torch.no_grad():
        for dtype in options.dtypes:
            others = other_cases(dtype) if options.every else ()
            for case in chain(cases(dtype), others):
                if options.words and not any(word in case.name for word in options.words):
                    continue
                row = measure(case, peers, peak, options.rounds)
                if row is not None:
                    rows.append(row)
                    print(json.dumps(asdict(row)), file=sys.stderr, flush=True)
    if not rows:
        sys.exit("no row has one of these words")
    document = {
        "peak": {"float32": peak.single, "float64": peak.flops["float64"], "bytes": peak.bytes},
        "rows": [asdict(row) for row in rows],
    }
    options.json.parent.mkdir(exist_ok=True)
    options.json.write_text(json.dumps(document, indent=1))
    print(*tables(rows, peers), sep="\n")
    wrong = [row for row in rows if "etx" in row.missing]
    for row in wrong:
        print(f"{row.name} {row.dtype}: {row.missing['etx']}")
    counts = Counter(peer for row in rows for peer in row.us)
    print(f"\n{len(rows)} rows; measured: {dict(counts)}")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
