# SPDX-License-Identifier: BSD-3-Clause
"""`etx bench --target`: on an emulated microcontroller, by a package that knows it."""

from __future__ import annotations

import argparse
import json

from etx_schema.entry_points import contributions

from etx_runtime.errors import InputError

GIVEN = ("board", "sources", "method")
"""Options that a target takes as they are."""


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add what says which target counts."""
    group = parser.add_argument_group("microcontrollers, of etx-backend-arm")
    group.add_argument(
        "--target", metavar="CPU[+NPU]", help="count instructions by operator in QEMU instead"
    )
    group.add_argument("--board", metavar="FILE", help="with --target: as of etx count")
    group.add_argument("--sources", metavar="DIR", help="with --target: as of etx count")


def bench_target(options: argparse.Namespace) -> None:
    """Print what each file executes. Errors: InputError for what times alone know."""
    timed = {"--data": options.data, "--threads": options.threads}
    timed |= {"--iterations": options.iterations, "--input": options.inputs.files}
    timed |= {"--shape": options.inputs.shapes, "--dim": options.inputs.symbols}
    if given := [name for name, value in timed.items() if value]:
        raise InputError(f"{given[0]} is of times, and --target counts: leave one of them out")
    providers = contributions("etx.bench")
    if not providers:
        raise InputError("--target needs etx-backend-arm: pip install 'etx-backend-arm[firmware]'")
    words = [f"--target={options.target}", f"--seed={options.inputs.seed}"]
    for name in GIVEN:
        if getattr(options, name) is not None:
            words.append(f"--{name}={getattr(options, name)}")
    try:
        counted = providers[0].load()
    except Exception as error:
        raise InputError(f"--target: {providers[0].value} cannot be loaded: {error}") from error
    table, rows = counted(options.file, words)
    print(json.dumps(rows if len(rows) > 1 else rows[0]) if options.json else table.rstrip())
