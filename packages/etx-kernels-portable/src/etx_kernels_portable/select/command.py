# SPDX-License-Identifier: BSD-3-Clause
"""The command `etx select`."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

from etx_schema.errors import EtxError
from etx_schema.outputs import OutputFolder
from etx_schema.stopping import replace_folder, scratch_folder, stopping

from etx_kernels_portable import library_path
from etx_kernels_portable.select.project import (
    HEADER,
    build,
    compiler_of,
    open_sources,
    write_project,
)
from etx_kernels_portable.select.selection import Selection, families, select
from etx_kernels_portable.select.sizes import Sizes, sizes

LEVELS = ("all", "base", "v3", "v4")


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "select",
        help="write a kernel library with only what files use",
        description="Write a folder with the sources of the kernels that the files call, as a "
        "CMake project for any toolchain: only their operators, dtypes and dim orders. With "
        "--static or --plugin the library is built in it; of a static one the size is printed by "
        "operator and by source, as a linker keeps it.",
        epilog="example: etx select model.pte -o kernels --static --optimize=-Os --level base",
    )
    parser.add_argument("files", nargs="*", metavar="file", help="a .pte file")
    parser.add_argument(
        "-o",
        "--output",
        type=OutputFolder,
        required=True,
        metavar="DIR",
        help="a folder of its own",
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--static", action="store_true", help="build libetx_kernels_portable.a")
    kinds.add_argument("--plugin", action="store_true", help="build etx_kernels_portable.so")
    parser.add_argument("--operator", action="append", default=[], metavar="NAME", help="one more")
    parser.add_argument("--dtype", action="append", default=[], metavar="NAME", help="one more")
    parser.add_argument(
        "--dim-orders", action="store_true", help="take tensors that are not row-major, too"
    )
    parser.add_argument(
        "--optimize", default="-O3", metavar="FLAG", help="level of optimisation (-O3)"
    )
    parser.add_argument(
        "--level",
        choices=LEVELS,
        default="all",
        help="the one instruction-set level to build, for small libraries; all: by the processor",
    )
    parser.add_argument("--toolchain", metavar="FILE", help="a CMake toolchain file, to build for")
    parser.add_argument("--sources", metavar="PATH", help="etx-kernels-portable's: folder, archive")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_run)


@stopping()
def _run(options: argparse.Namespace) -> int:
    if not options.files and not options.operator:
        raise EtxError("nothing is selected: name .pte files, or operators with --operator")
    target = Path(options.output)
    if target.exists() and not (target / HEADER).is_file():
        raise EtxError(f"{target} exists and was not written by etx select: give another folder")
    with open_sources(options.sources) as sources:
        library = families(sources, library_path())
        chosen = select(options.files, options.operator, options.dtype, library, options.dim_orders)
        target.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(f".{target.name}-", target.parent) as scratch:
            work = scratch / target.name
            work.mkdir()
            measured = _make(work, sources, chosen, options)
            replace_folder(work, target)
    _print(options, chosen, measured)
    return 0


def _make(
    work: Path, sources: Path, chosen: Selection, options: argparse.Namespace
) -> Sizes | None:
    """Write and build; return the sizes, None where nothing is built as a static library."""
    names = " ".join(shlex.quote(os.path.basename(file)) for file in options.files)
    level = "" if options.level == "all" else options.level
    given = {"optimize": options.optimize, "level": level}
    write_project(work, sources, chosen, f"etx select {names}", options.files, **given)
    if not (options.static or options.plugin):
        return None
    built = build(work, is_static=options.static, toolchain=options.toolchain)
    compiler = compiler_of(work)
    shutil.rmtree(work / "build")
    return sizes(built, compiler) if options.static else None


def _print(options: argparse.Namespace, chosen: Selection, measured: Sizes | None) -> None:
    if options.json:
        document: dict[str, Any] = {
            "folder": options.output,
            "operators": chosen.operators,
            "dtypes": chosen.dtypes,
            "dim_orders": chosen.orders,
            "families": chosen.families,
            "elsewhere": chosen.elsewhere,
            "sizes": measured.sources if measured else {},
            "operator_sizes": measured.operators if measured else {},
        }
        if measured:
            document |= {"shared": measured.shared, "rest": measured.rest, "total": measured.total}
        print(json.dumps(document))
        return
    count = len(chosen.operators)
    print(f"{options.output}: {count} operators in {', '.join(chosen.dtypes) or 'no dtype'}")
    if chosen.elsewhere:
        print(f"  another plugin must bring {', '.join(chosen.elsewhere)}")
    if measured:
        _print_sizes(chosen, measured)


def _print_sizes(chosen: Selection, measured: Sizes) -> None:
    from etx_runtime.commands.table import print_table

    ordered = sorted(measured.operators.items(), key=lambda row: (-row[1]["own"], row[0]))
    cells = [(name, f"{row['own']:,}", f"{row['all']:,}") for name, row in ordered]
    cells.append(("what several need", f"{measured.shared:,}", ""))
    cells.append(("tables and texts", f"{measured.rest:,}", ""))
    cells.append(("all", f"{measured.total:,}", ""))
    print_table(("operator", "its own", "with what it needs"), cells, left=1)
    rows = sorted(measured.sources.items(), key=lambda row: -sum(row[1].values()))
    by_source = [
        (
            source,
            ", ".join(chosen.families.get(source.removesuffix(".cpp"), ())),
            f"{row['code']:,}",
            f"{row['constants']:,}",
        )
        for source, row in rows
    ]
    kinds = ("code", "constants")
    total = [sum(row[kind] for row in measured.sources.values()) for kind in kinds]
    by_source.append(("all", "", f"{total[0]:,}", f"{total[1]:,}"))
    print()
    print_table(("source", "operators", "code", "constants"), by_source, left=2)
