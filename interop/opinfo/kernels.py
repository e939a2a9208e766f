# SPDX-License-Identifier: BSD-3-Clause
"""What ExecuTorch's kernels take, of what ours take: each is called on its runtime.

usage: kernels.py {dtypes,layouts,samples} OUTPUT.json [--only NAME] [--dtypes NAME...] [--most N]

`dtypes` calls every kernel with every combination of dtypes and writes rows; `layouts` calls each
with tensors in rows and channels last and writes which of them run; `samples` makes the calls that
PyTorch's samples make and writes those that fail or differ.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "packages" / "etx-kernels-portable" / "tests"))
sys.path.insert(0, str(ROOT / "packages" / "etx-kernels-portable" / "tests" / "support"))

import dtypes  # noqa: E402
import intercept  # noqa: E402
from calls import OneCall, one_call  # noqa: E402
from etx_schema import Target, serialize_pte  # noqa: E402
from etx_schema.targets.takes import misfit_of  # noqa: E402
from harness import PLUGIN  # noqa: E402
from layouts import layouts  # noqa: E402

BATCH = 400
UNSET = ("empty", "rand", "dropout", "bernoulli", "normal")


def outcomes(calls: Sequence[OneCall]) -> list[tuple[str, str]]:
    """Execute calls in processes of their own; a crash is an outcome."""
    found: list[tuple[str, str]] = []
    while len(found) < len(calls):
        begin = len(found)
        got = _forked(calls[begin:])
        found += got
        if len(found) < len(calls):
            found.append(("crash", "the process died"))
    return found


def _forked(calls: Sequence[OneCall]) -> list[tuple[str, str]]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            _child(calls, writer)
        finally:
            os._exit(0)
    os.close(writer)
    found = []
    with os.fdopen(reader, "rb") as stream:
        while True:
            try:
                found.append(pickle.load(stream))
            except EOFError:
                break
    os.waitpid(pid, 0)
    return found


def _child(calls: Sequence[OneCall], writer: int) -> None:
    from execute import SECONDS, Log, execute

    log = Log()
    with os.fdopen(writer, "wb") as stream:
        for call in calls:
            signal.alarm(SECONDS)
            row = {
                "file": bytes(serialize_pte(call.pte)),
                "inputs": call.inputs,
                "expected": call.expected,
                "values": not any(word in call.kernel for word in UNSET),
            }
            what, detail = execute(row)
            reason = log.taken()
            pickle.dump((what, detail if what == "differs" else reason or detail), stream)
            stream.flush()


def results_of(op: Any, given: dict[str, Any]) -> list[torch.Tensor] | None:
    """Return what eager gives; None where it gives no tensors or refuses."""
    try:
        result = dtypes.call_with(op, given)
    except Exception:
        return None
    found = [result] if isinstance(result, torch.Tensor) else list(result or ())
    return found if all(isinstance(x, torch.Tensor) for x in found) else None


def combined(call: dtypes.Call, row: Any) -> Iterator[tuple[tuple[str, ...], OneCall]]:
    """Yield the call with each combination of dtypes that our row takes."""
    arguments = intercept.arguments_of(call.op, call.args, call.kwargs)
    schema = {a.name: a for a in call.op._schema.arguments}
    optional = {name: str(schema[name].type).startswith("Optional") for name in arguments}
    domains = [
        dtypes.choices(schema[name], value, optional[name]) for name, value in arguments.items()
    ]
    variant = intercept.variant_of(call.op)
    kernel = PLUGIN.kernels[intercept.kernel_name(variant)]
    names = [a.name for a in variant._schema.arguments if not a.is_out]
    for kinds_row in dtypes.combinations(domains):
        given = {
            name: dtypes.replaced(value, kind) if kind else value
            for (name, value), kind in zip(arguments.items(), kinds_row, strict=True)
        }
        kinds = intercept.kinds_of(kernel, [given[name] for name in names])
        reference = dtypes.expected_of(call.op, given)
        listed = [reference] if isinstance(reference, torch.Tensor) else list(reference or ())
        if not listed or any(w.dtype not in intercept.DTYPES for w in listed):
            continue
        if variant is not call.op:
            kinds.append(dtypes.dtype_name(listed[0].dtype))
        if misfit_of(row, [[k] if k else [] for k in kinds], kinds[-1]) is not None:
            continue
        if variant is call.op:
            given = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in given.items()}
        expected = results_of(call.op, dict(given))
        if expected is not None:
            yield tuple(kinds), one_call(call.op, given, expected)


def sweep_dtypes(options: argparse.Namespace, target: Target) -> dict[str, Any]:
    """Return rows of what both take, by kernel, and what was found."""
    rows, notes = {}, {}
    for name, calls in sorted(dtypes.examples().items()):
        if name not in target.operators or options.only not in ("", name):
            continue
        begin = time.perf_counter()
        tried: dict[tuple[str, ...], bool] = {}
        why: dict[str, list[str]] = {}
        for call in dtypes.chosen(calls):
            found = list(combined(call, target.operators[name]))
            for (kinds, _), (what, detail) in zip(
                found, outcomes([c for _, c in found]), strict=True
            ):
                tried[kinds] = tried.get(kinds, False) or what == "same"
                if what != "same":
                    why.setdefault(f"{what}: {detail}"[:300], []).append(" ".join(kinds))
        seconds = time.perf_counter() - begin
        print(f"{name}: {Counter(tried.values())} {seconds:.1f} s", flush=True)
        if why:
            notes[name] = {k: [len(v), *v[:6]] for k, v in why.items()}
        if all(tried.values()):
            continue
        names = dtypes.names_of(calls[0])
        try:
            rows[name] = dtypes.row_of(names, tried)
        except ValueError as error:
            rows[name] = {"nothing": str(error)}
    return {"rows": rows, "notes": notes}


def sweep_layouts(options: argparse.Namespace, target: Target) -> dict[str, Any]:
    """Return by kernel what happens with each layout of its tensors."""
    found: dict[str, Any] = {}
    for name, calls in sorted(dtypes.examples().items()):
        if name not in target.operators or options.only not in ("", name):
            continue
        made = {text: c for call in dtypes.chosen(calls) for text, c in layouts(call, results_of)}
        made = {text: c for text, c in made.items() if not target.check(c.pte, ())}
        happened = outcomes(list(made.values()))
        found[name] = {
            text: what if what == "same" else f"{what}: {detail}"[:200]
            for text, (what, detail) in zip(made, happened, strict=True)
        }
        print(f"{name}: {Counter(what for what, _ in happened)}", flush=True)
        Path(options.output).write_text(json.dumps(found, indent=1))
    return found


class Gather(dtypes.Seen):
    """Makes a file of each new call of a kernel that the target takes."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target
        self.known: set[Any] = set()
        self.made: list[tuple[str, OneCall]] = []
        self.refused: Counter[str] = Counter()

    def __torch_dispatch__(
        self, op: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        variant = intercept.variant_of(op)
        if variant is None:
            return super().__torch_dispatch__(op, types, args, kwargs)
        name = intercept.kernel_name(variant)
        given = intercept.arguments_of(op, args, kwargs)
        key = (name, *map(_key, given.values()))
        frozen = dict(given)
        if variant is op:
            frozen = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in given.items()}
        result = op(*args, **kwargs)
        if key in self.known or name not in self.target.operators:
            return result
        self.known.add(key)
        reference = [result] if isinstance(result, torch.Tensor) else result
        if not isinstance(reference, (list, tuple)):
            return result
        try:
            call = one_call(op, frozen, [w.detach().clone() for w in reference])
        except Exception as error:
            self.refused[f"{name}: {type(error).__name__}"] += 1
            return result
        if self.target.check(call.pte, ()):
            self.refused[name] += 1
        else:
            self.made.append((f"{name}{key[1:]}"[:400], call))
        return result


def _key(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return dtypes.dtype_name(value.dtype), tuple(value.shape)
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    return repr(value)


def sweep_samples(options: argparse.Namespace, target: Target) -> dict[str, Any]:
    """Return the calls that fail or differ, by kernel and reason."""
    from torch.testing._internal.common_methods_invocations import op_db
    from write import samples

    gather = Gather(target)
    bad: dict[str, dict[str, list[Any]]] = {}
    counts: Counter[str] = Counter()

    def flush() -> None:
        made, gather.made = gather.made, []
        for (text, call), (what, detail) in zip(made, outcomes([c for _, c in made]), strict=True):
            counts[what] += 1
            if what != "same":
                rows = bad.setdefault(call.kernel, {}).setdefault(f"{what}: {detail}"[:300], [0])
                rows[0] += 1
                if len(rows) < 5:
                    rows.append(text)
        Path(options.output).write_text(json.dumps(bad, indent=1))
        print(counts, flush=True)

    for dtype in (getattr(torch, name) for name in options.dtypes):
        for op in op_db:
            if dtype not in op.dtypes or options.only not in ("", op.name):
                continue
            try:
                found = samples(op, dtype, options.most)
            except Exception as error:
                print(op.name, dtype, error)
                continue
            for _, sample in found:
                try:
                    with gather, torch.no_grad():
                        op.op(sample.input, *sample.args, **sample.kwargs)
                except Exception:
                    counts["eager refuses"] += 1
                if len(gather.made) >= BATCH:
                    flush()
        flush()
        print(dtype, flush=True)
    return bad


def main() -> None:
    """Run a sweep and write what it finds."""
    from write import DTYPES

    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("dtypes", "layouts", "samples"))
    parser.add_argument("output")
    parser.add_argument("--only", default="")
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    target = Target.load(str(ROOT / "packages/etx-schema/src/etx_schema/targets/executorch.json"))
    import executorch.runtime  # noqa: F401

    sweeps = {"dtypes": sweep_dtypes, "layouts": sweep_layouts, "samples": sweep_samples}
    found = sweeps[options.what](options, target)
    Path(options.output).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
