# SPDX-License-Identifier: BSD-3-Clause
"""The commands `etx run` and `etx bench`."""

from __future__ import annotations

import argparse
from typing import Any


def register(subparsers: Any) -> None:
    """Add the commands to `etx`."""
    run = subparsers.add_parser(
        "run",
        help="run a .pte file",
        description="Run a method of a .pte file and print its outputs. Buffers keep their values "
        "from call to call: give a set of inputs for each of several calls in a row, or "
        "--iterations to repeat one.",
        epilog="example: etx run model.pte --input ids.npy --input mask.npy --output-dir out",
    )
    run.add_argument("file", help="a .pte file")
    _add_model(run)
    run.add_argument(
        "--iterations", type=_positive, default=1, metavar="N", help="repeat each call N times"
    )
    run.add_argument("--output-dir", metavar="DIR", help="write output_0.npy, … there")
    run.add_argument(
        "--format", choices=("npy", "npz", "bin"), default="npy", help="of the files written"
    )
    run.set_defaults(run=_run)
    bench = subparsers.add_parser(
        "bench",
        help="measure .pte files",
        description="Measure load time, latency and memory of a method; several files take turns "
        "and are compared with the first.",
        epilog="example: etx bench float.pte int8.pte --shape 1,3,224,224 --threads 1 --operators",
    )
    bench.add_argument("file", nargs="+", help="a .pte file; more to compare with it")
    _add_model(bench)
    bench.add_argument("--iterations", type=_positive, default=20, metavar="N")
    bench.add_argument("--warmup", type=_natural, default=3, metavar="N")
    bench.add_argument("--operators", action="store_true", help="also times by operator")
    bench.set_defaults(run=_bench)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--method", default="forward", metavar="NAME")
    parser.add_argument(
        "--data", action="append", default=[], metavar="FILE", help="a .ptd file with weights"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="FILE",
        help=".npy, .npz or raw .bin; once for each array input",
    )
    source.add_argument("--random", action="store_true", help="random inputs (the default)")
    parser.add_argument("--seed", type=int, default=0, help="of random inputs")
    parser.add_argument(
        "--shape",
        action="append",
        type=_shape,
        default=[],
        metavar="1,3,224",
        help="of random inputs, once for each array input; or min or max (the default) for all",
    )
    parser.add_argument("--threads", type=_positive, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _shape(text: str) -> tuple[int, ...] | str:
    if text in ("min", "max"):
        return text
    return tuple(int(part) for part in text.split(",") if part.strip())


def _run(options: argparse.Namespace) -> None:
    from etx_runtime.command_run import run

    run(options)


def _bench(options: argparse.Namespace) -> None:
    from etx_runtime.command_bench import bench

    bench(options)
