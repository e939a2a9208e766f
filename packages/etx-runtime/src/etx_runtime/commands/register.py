# SPDX-License-Identifier: BSD-3-Clause
"""The commands `etx run` and `etx bench`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etx_schema.numbers import real, whole
from etx_schema.outputs import InPlaceFile, OutputFile, OutputFolder

from etx_runtime.commands.target import GIVEN, add_target, bench_target
from etx_runtime.errors import InputError

if TYPE_CHECKING:
    from etx_runtime.commands.samples import InputOptions

RUN_EXAMPLES = """\
examples:
  etx run model.pte                                   random inputs of the largest shapes
  etx run model.pte --input ids.npy --input mask.npy  arrays in the order of the inputs
  etx run model.pte --input ids=ids.npy --input n=3   by name, in any order; numbers as they are
  etx run model.pte --shape 1,3,224,224 --seed 7      other random inputs
  etx run model.pte --dim batch=4                     a symbolic dimension; --shape min: all least
  etx run model.pte --input x.npy --expect y.npy      exit code 1 when an output is not close
  etx run model.pte --input all.npz --output-dir out --format npz
  etx run model.pte --etdump model.etdp --values all  for etx profile and ExecuTorch's Inspector
  etx run llm.pte --data weights.ptd --load-state s.npz --save-state s.npz

Buffers keep their values from call to call: several sets of --input are calls in a row, and
--iterations repeats each. `etx show model.pte` prints names, shapes and bounds of the inputs.
bfloat16 and float8 arrays are read and written as unsigned integers of their width.

An .npz has an array for each input by its name, or all as arr_0, arr_1 (of numpy.savez). Several
calls are an axis more in front, a multiple of a fixed first axis, or arrays NAME.0, NAME.1. All
commands read files so, `etx compile --calibrate` too.
"""

BENCH_EXAMPLES = """\
examples:
  etx bench model.pte --operators                     also where the time goes
  etx bench model.pte --threads 1 --seconds 5
  etx bench float.pte int8.pte --shape 1,3,224,224    two files in turns
  etx bench model.pte --iterations 100 --warmup 10 --json
  etx bench a.pte b.pte --target cortex-m4            instructions by operator, in QEMU

A time is that of one call from Python: setting the inputs and executing, without copying outputs.
Times of operators come from calls of their own, in which each instruction is timed.
"""


def register_run(subparsers: Any) -> None:
    """Add `etx run`."""
    run = subparsers.add_parser(
        "run",
        usage="etx run FILE [OPTION]...",
        help="run a .pte file",
        description="Run a method of a .pte file; print, write or compare its outputs.",
        epilog=RUN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("file", help="a .pte file")
    add_model(run)
    run.add_argument(
        "--iterations",
        type=whole(1),
        default=1,
        metavar="N",
        help="repeat each call N times (default: 1)",
    )
    state = run.add_argument_group("state")
    state.add_argument(
        "--load-state", metavar="FILE.npz", help="set buffers by name before the first call"
    )
    state.add_argument(
        "--save-state",
        type=InPlaceFile,
        metavar="FILE.npz",
        help="write all buffers after the last call",
    )
    outputs = run.add_argument_group("outputs")
    outputs.add_argument(
        "--output-dir",
        type=OutputFolder,
        metavar="DIR",
        help="write output_0.npy, … there, or outputs.npz",
    )
    outputs.add_argument(
        "--format",
        choices=("npy", "npz", "bin"),
        default="npy",
        help="of the files written (default: npy)",
    )
    outputs.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="FILE",
        help="compare with these .npy, .npz or .bin: an array for each output",
    )
    outputs.add_argument("--atol", type=real(0), default=1e-5, metavar="X", help="default: 1e-5")
    outputs.add_argument("--rtol", type=real(0), default=1e-5, metavar="X", help="default: 1e-5")
    recording = run.add_argument_group("recording")
    recording.add_argument(
        "--etdump",
        type=OutputFile,
        metavar="FILE.etdp",
        help="write what ran and how long, as an ETDump",
    )
    recording.add_argument(
        "--values",
        default="none",
        metavar="WHAT[,WHERE]...",
        help="results to record: none, outputs, all, or stats: their min, max, mean, NaN, Inf, "
        "hash; WHERE is a module or FROM-TO, the instructions they are of (default: none)",
    )
    recording.add_argument(
        "--debug-buffer",
        type=OutputFile,
        metavar="FILE.bin",
        help="where they go (default: FILE.bin beside it)",
    )
    recording.add_argument(
        "--etdump-threads",
        action="store_true",
        help="record too what each thread does of loops, the lanes of a trace; without --values",
    )
    run.set_defaults(run=_run)


def register_bench(subparsers: Any) -> None:
    """Add `etx bench`."""
    bench = subparsers.add_parser(
        "bench",
        usage="etx bench FILE... [OPTION]...",
        help="measure .pte files",
        description="Measure load time, latency and memory of a method; several files take turns "
        "and are compared with the first.",
        epilog=BENCH_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    bench.add_argument("file", nargs="+", help="a .pte file; more to compare with it")
    add_model(bench)
    bench.add_argument(
        "--iterations", type=whole(1), metavar="N", help="default: as many as fit in --seconds"
    )
    bench.add_argument(
        "--seconds", type=real(1e-3), default=1.0, metavar="S", help="measure so long (default: 1)"
    )
    bench.add_argument(
        "--warmup", type=whole(0), default=3, metavar="N", help="calls before (default: 3)"
    )
    bench.add_argument("--operators", action="store_true", help="also times by operator")
    add_target(bench)
    bench.set_defaults(run=_bench)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add what says which method runs on which inputs: `input_options` reads the latter."""
    parser.add_argument("--method", metavar="NAME", help="default: forward, or the only one")
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="FILE",
        help="a .ptd file with weights; once for each",
    )
    parser.add_argument(
        "--no-mmap",
        dest="mmap",
        action="store_false",
        help="read the files, which may change then; they are mapped otherwise",
    )
    parser.add_argument(
        "--threads", type=_threads, metavar="N", help="default: the cores that may be used"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    inputs = parser.add_argument_group("inputs")
    inputs.add_argument(
        "--input",
        action="append",
        type=_input,
        default=[],
        metavar="[NAME=]FILE",
        help=".npy, .npz or raw .bin: once for each array input, in order or by name; "
        "NAME=NUMBER for a number",
    )
    inputs.add_argument(
        "--random", action="store_true", help="what is not given is random (always so)"
    )
    inputs.add_argument("--seed", type=whole(0), default=0, help="of random numbers (default: 0)")
    inputs.add_argument(
        "--shape",
        action="append",
        type=_shape,
        default=[],
        metavar="[NAME=]1,3,224",
        help="of random inputs and .bin files, in order or by name; or min or max (the default)",
    )
    inputs.add_argument(
        "--dim",
        action="append",
        type=_dim,
        default=[],
        metavar="SYMBOL=N",
        help="the size of a symbolic dimension, as `etx show` names it",
    )


def _threads(text: str) -> int:
    number = whole(1)(text)
    if number > 1024:
        raise argparse.ArgumentTypeError(f"expected at most 1024 threads, got {number}")
    return number


def _split(text: str) -> tuple[str, str]:
    """Part `name=rest`; the name is empty where there is none."""
    name, mark, rest = text.partition("=")
    return (name, rest) if mark and not Path(text).exists() else ("", text)


def _input(text: str) -> tuple[str, str]:
    return _split(text)


def _shape(text: str) -> tuple[str, tuple[int, ...] | str]:
    name, sizes = _split(text)
    if sizes in ("min", "max") and not name:
        return name, sizes
    try:
        shape = tuple(int(part) for part in sizes.split(",") if part.strip())
    except ValueError:
        shape = (-1,)
    if any(size < 0 for size in shape):
        raise argparse.ArgumentTypeError(f"expected sizes such as 1,3,224, got '{sizes}'")
    return name, shape


def _dim(text: str) -> tuple[str, int]:
    symbol, mark, number = text.partition("=")
    if not symbol or not mark:
        raise argparse.ArgumentTypeError(f"expected SYMBOL=N, got '{text}'")
    return symbol.strip(), whole(0)(number)


def input_options(options: argparse.Namespace) -> InputOptions:
    """Return what the options of `add_model` say of the inputs."""
    from etx_runtime.commands.samples import InputOptions

    extremes = [shape for _, shape in options.shape if isinstance(shape, str)]
    shapes = [(name, shape) for name, shape in options.shape if not isinstance(shape, str)]
    extreme = extremes[-1] if extremes else "max"
    return InputOptions(options.input, options.seed, shapes, extreme, dict(options.dim))


def _run(options: argparse.Namespace) -> int:
    from etx_runtime.commands.run import run

    options.inputs = input_options(options)
    return run(options)


def _bench(options: argparse.Namespace) -> None:
    options.inputs = input_options(options)
    if options.target is not None:
        bench_target(options)
        return
    for name in GIVEN[:2]:
        if getattr(options, name) is not None:
            raise InputError(f"--{name} is of a target: add --target, such as --target cortex-m4")
    from etx_runtime.commands.bench import bench

    bench(options)
