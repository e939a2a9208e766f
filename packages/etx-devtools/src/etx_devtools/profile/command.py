# SPDX-License-Identifier: BSD-3-Clause
"""The command `etx profile`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from etx_schema import EtxError, read_pte
from etx_schema.calls import choose_method, method_names
from etx_schema.errors import naming
from etx_schema.files import write_atomically
from etx_schema.numbers import whole
from etx_schema.outputs import OutputFile

from etx_devtools.etdump import read_etdump
from etx_devtools.percentiles import median
from etx_devtools.profile import VIEWS, Profile, chrome_trace, lines, profile_of
from etx_devtools.profile.remarks import failures, remarks, scratch

EXAMPLES = """\
examples:
  etx profile model.pte                          by operator, and within delegates
  etx profile model.pte --by module --input x.npy
  etx profile model.pte --by instruction --executions 50 --json
  etx profile old.pte new.pte --by module        two files, which take turns, side by side
  etx profile model.pte --trace out.json         for ui.perfetto.dev or chrome://tracing
  etx profile model.pte --etdump out.etdp        what a device or `etx run --etdump` recorded

Recorded executions take turns with others, and what recording an instruction cost is taken off;
the times are medians. Modules and lines are those that the file names (`etx/debug`).
"""


def register(subparsers: Any) -> None:
    """Add the command to `etx`."""
    parser = subparsers.add_parser(
        "profile",
        help="print where the time of a .pte file goes",
        description="Run a method and print the times of its operators, modules or source lines.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="a .pte or .bpte file")
    parser.add_argument("other", nargs="?", help="a file to set beside it")
    try:
        from etx_runtime.commands.register import add_model
    except ImportError:
        parser.add_argument("--method", metavar="NAME", help="default: forward, or the only one")
        parser.add_argument("--json", action="store_true", help="print one JSON document")
    else:
        add_model(parser)
    shown = parser.add_argument_group("profile")
    shown.add_argument("--by", choices=VIEWS, default="operator", help="default: operator")
    shown.add_argument(
        "--executions", type=whole(1), default=20, metavar="N", help="to record (default: 20)"
    )
    shown.add_argument(
        "--trace", type=OutputFile, metavar="FILE.json", help="also write Chrome trace events"
    )
    shown.add_argument("--etdump", metavar="FILE.etdp", help="do not run: read what was recorded")
    shown.add_argument(
        "--tick-ns", type=_number, default=1.0, metavar="X", help="of its clock (default: 1)"
    )
    parser.set_defaults(run=_profile)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number above 0, got '{text}'")
    return number


def _profile(options: argparse.Namespace) -> None:
    if options.other is not None:
        _print_both(options)
        return
    tick_ms = options.tick_ns / 1e6 if options.etdump else 1e-6
    if options.etdump:
        with naming(options.file):
            pte = read_pte(options.file)
            method = choose_method(method_names(pte), options.method, options.file)
        with naming(options.etdump):
            runs = read_etdump(options.etdump)
            profile = profile_of(pte, runs, method=method, file=options.file, tick_ms=tick_ms)
    else:
        with naming(options.file):
            (profile,) = _run(options, [options.file])
    if options.trace:
        document = json.dumps(chrome_trace(profile, tick_ms=tick_ms), separators=(",", ":"))
        write_atomically(options.trace, [document.encode()])
    if options.json:
        print(json.dumps(_document(profile, options.by), indent=1))
    else:
        _print(profile, options.by)


def _run(options: argparse.Namespace, files: Sequence[str]) -> list[Profile]:
    try:
        from etx_runtime import Recorder, get_num_threads, set_num_threads
        from etx_runtime.commands.measure import measure_load
        from etx_runtime.commands.register import input_options
        from etx_runtime.commands.samples import prepare_calls
    except ImportError as error:
        raise EtxError(
            "etx profile runs the file with etx-runtime, which is not installed; install "
            "etx-devtools[run] and kernels such as etx-kernels-portable, or give --etdump"
        ) from error
    from etx_devtools.profile.record import Recorded, record

    if options.threads:
        set_num_threads(options.threads)
    methods, loads = [], []
    for file in files:
        recorder = Recorder(threads=options.trace is not None)
        with naming(file):
            method, load_ms = measure_load(
                file, options.data, options.method, options.mmap, recorder
            )
            calls = prepare_calls(method, input_options(options))
        if len(calls) != 1:
            raise EtxError(f"profile takes inputs for one call, got {len(calls)} sets")
        methods.append(Recorded(method, recorder, calls[0]))
        loads.append(load_ms)
    record(methods, options.executions)
    profiles = []
    for file, load_ms, each in zip(files, loads, methods, strict=True):
        with naming(file):
            profile = profile_of(
                read_pte(file),
                each.runs,
                method=each.method.metadata.name(),
                file=file,
                untraced_ms=each.untraced_ms,
                cost_ms=each.cost_ms,
                inner_cost_ms=each.inner_cost_ms,
            )
        profile.load_ms, profile.first_ms = load_ms, each.first_ms
        profiles.append(profile)
    if options.by == "instruction":
        _set_peak(profiles, get_num_threads())
    return profiles


def _set_peak(profiles: Sequence[Profile], threads: int) -> None:
    """What NumPy reaches, or an instruction where that is more."""
    from etx_devtools.profile.peak import measure_peak

    steps = [step for profile in profiles for step in profile.steps]
    reached = [(step.work, median(step.ms) / 1e3 / max(step.calls, 1)) for step in steps]
    peak = measure_peak(threads).raised(reached)
    for profile in profiles:
        profile.peak = peak


def _print_both(options: argparse.Namespace) -> None:
    """Print two files side by side."""
    from etx_devtools.profile.both import document_of_both, print_both

    if options.etdump or options.trace:
        raise EtxError("--etdump and --trace are of one file; two were given")
    with naming(options.file, options.other):
        one, other = _run(options, [options.file, options.other])
    if options.json:
        documents = [_document(profile, options.by) for profile in (one, other)]
        print(json.dumps(document_of_both(one, other, options.by, documents), indent=1))
    else:
        print_both(one, other, options.by)


def _document(profile: Profile, view: str) -> dict[str, Any]:
    most = scratch(profile)
    return {
        "file": profile.file,
        "method": profile.method,
        "executions": profile.executions,
        "load_ms": profile.load_ms,
        "first_ms": profile.first_ms,
        "untraced_ms": median(profile.untraced_ms) if profile.untraced_ms else None,
        "traced_ms": median(profile.whole_ms),
        "recording_ns": profile.cost_ms * 1e6,
        "inner_recording_ns": profile.inner_cost_ms * 1e6 if _told(profile) else None,
        "total_ms": profile.total_ms,
        "attributed": profile.attributed,
        "peak_gflop_s": profile.peak.flop / 1e9 if profile.peak else None,
        "peak_gb_s": (
            {size: rate / 1e9 for size, rate in profile.peak.bytes.items()}
            if profile.peak
            else None
        ),
        "failures": [vars(failure) for failure in failures(profile)],
        "scratch_bytes": most[0] if most else None,
        "scratch_instruction": most[1] if most else None,
        "missing_events": sum(run.missing_events for run in profile.runs),
        "by": view,
        "lines": [vars(line) for line in lines(profile, view)],
    }


def _told(profile: Profile) -> bool:
    return any(step.told for step in profile.steps)


def _print(profile: Profile, view: str) -> None:
    from etx_devtools.profile.text import amount_text, print_lines, time_text

    print_lines(lines(profile, view), view)
    times = {"load": profile.load_ms, "first call": profile.first_ms}
    known = [f"{name} {time_text(ms)}" for name, ms in times.items() if ms is not None]
    if profile.untraced_ms:
        known.append(f"steady {time_text(median(profile.untraced_ms))}")
    known.append(f"{profile.executions} recorded at {time_text(median(profile.whole_ms))}")
    print("; ".join(known))
    if profile.untraced_ms:
        off = 100 * (profile.total_ms / median(profile.untraced_ms) - 1)
        cost = f"{profile.cost_ms * 1e6:.0f} ns an instruction"
        if _told(profile):
            cost += f" and {profile.inner_cost_ms * 1e6:.0f} ns an event within delegates"
        print(
            f"recording cost {cost}, taken off; "
            f"the instructions' sum is {time_text(profile.total_ms)}, {off:+.1f} % from steady"
        )
    if profile.peak:
        rates = ", ".join(
            f"{rate / 1e9:.3g} GB/s of {amount_text(size)} bytes"
            for size, rate in profile.peak.bytes.items()
        )
        print(
            f"peak: {profile.peak.flop / 1e9:.3g} GFLOP/s, {rates}: NumPy's matrix product and "
            "copy, or an instruction that is faster"
        )
    print(f"{100 * profile.attributed:.1f} % of the time has a module or a source line")
    for line in remarks(profile):
        print(line)
    missing = sum(run.missing_events for run in profile.runs)
    if missing:
        needed = sum(run.missing_bytes for run in profile.runs)
        print(f"{missing} events are missing: the recorder needed {needed} bytes more")
