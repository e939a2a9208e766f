# SPDX-License-Identifier: BSD-3-Clause
"""The command `etx`: `show`, the commands of this package, and what other packages add."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from etx_schema import commands
from etx_schema._version import __version__
from etx_schema.entry_points import contributions
from etx_schema.errors import EtxError, ProgramError
from etx_schema.files import load_bytes

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "etx.commands"

EXAMPLES = """\
examples:
  etx show model.pte                   what is in a file: methods, instructions, delegates, sizes
  etx show model.pte --json            the same for machines
  etx show weights.ptd                 tensors outside of a program
  etx memory model.pte -o model.svg    draw the planned memory: bytes over instructions
  etx check model.pte --target portable    does it run there? exit code 1 says no
  etx targets                          the targets of the packages that are installed
  etx strip model.pte -o small.pte     without source lines and stack traces
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 when a check found problems, 2 on an error."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        options = build_parser(*words[:1]).parse_args(words)
        return int(options.run(options) or 0)
    except EtxError as error:
        print(f"etx: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("etx: stopped", file=sys.stderr)
        return 130


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Build the parser of all installed commands, or of `command` alone where it is known.

    An entry point has the name of the command that it adds.
    """
    parser = argparse.ArgumentParser(
        prog="etx",
        description="Look at, check and (with other packages) make and run .pte files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="list what is installed")
    parser.set_defaults(run=lambda _: parser.print_help())
    subparsers = parser.add_subparsers(metavar="COMMAND")
    _register(subparsers)
    added = [] if command in subparsers.choices else contributions(COMMANDS)
    for entry in [entry for entry in added if entry.name == command] or added:
        try:
            entry.load()(subparsers)
        except Exception as error:
            _register_broken(subparsers, entry.name, f"{entry.value}: {error}")
    return parser


def _register(subparsers: Any) -> None:
    show = subparsers.add_parser(
        "show",
        help="print what is in a .pte or .ptd file",
        description="Print methods, inputs, outputs, one line an instruction, constants, "
        "delegates, arenas and segments.",
        epilog="example: etx show model.pte | less",
    )
    show.add_argument("file", help="a .pte or .ptd file")
    show.add_argument(
        "--debug",
        action="store_true",
        help="print what each instruction was before lowering",
    )
    show.add_argument("--json", action="store_true", help="print one JSON document")
    show.set_defaults(run=_show)
    commands.register(subparsers)


def _register_broken(subparsers: Any, name: str, reason: str) -> None:
    summary = f"not usable: {reason}".replace("%", "%%")
    parser = subparsers.add_parser(name, help=summary, add_help=False, prefix_chars="\0")
    parser.add_argument("rest", nargs="*")

    def run(_: argparse.Namespace) -> None:
        raise EtxError(f"the command {name!r} does not load: {reason}")

    parser.set_defaults(run=run)


def _show(options: argparse.Namespace) -> None:
    from etx_schema.describe import describe_ptd, describe_pte
    from etx_schema.ptd import read_ptd, read_ptd_root
    from etx_schema.show import lines

    view = load_bytes(options.file)
    try:
        kind = bytes(view[4:8])
        if kind == b"FT01":
            document = describe_ptd(read_ptd(view), read_ptd_root(view)[1])
        elif kind == b"ET12":
            document = describe_pte(view)
        else:
            raise ProgramError("neither a .pte nor a .ptd file", 4 if len(view) >= 8 else 0)
    except ProgramError as error:
        raise EtxError(f"{options.file}: {error}") from error
    if options.json:
        print(json.dumps(document, indent=1))
    else:
        _print(lines(options.file, document, debug=options.debug))


def _print(rows: Iterable[str]) -> None:
    """Print lines; with rich on a terminal, headings stand out and origins step back."""
    console: Any = None
    if sys.stdout.isatty():
        try:
            from rich.console import Console

            console = Console(highlight=False, markup=False, soft_wrap=True)
        except ImportError:
            pass
    for row in rows:
        if console is None:
            print(row)
            continue
        text, mark, origin = row.partition("  # ")
        console.print(text, style="bold" if row[:1].strip() else None, end="")
        console.print(mark + origin, style="dim")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        for line in versions():
            print(line)
        parser.exit()


def versions() -> list[str]:
    """List the installed packages, what else they version (the plugin ABI), plugins, targets."""
    from importlib.metadata import distributions

    found = {d.metadata["Name"]: d.version for d in distributions() if d.metadata["Name"]}
    rows = {name: version for name, version in found.items() if name.startswith("etx-")}
    rows.setdefault("etx-schema", __version__)
    lines = [f"{name} {rows[name]}" for name in sorted(rows)]
    lines += [f"{entry.name} ABI: {_load(entry)}" for entry in contributions("etx.abi")]
    for what, group in (("plugins", "etx.plugins"), ("targets", "etx.targets")):
        names = [f"{e.name} ({e.dist.name})" if e.dist else e.name for e in contributions(group)]
        lines.append(f"{what}: {', '.join(names) or 'none'}")
    return lines


def _load(entry: EntryPoint) -> object:
    try:
        return entry.load()
    except Exception as error:
        return f"not known: {error}"


if __name__ == "__main__":
    sys.exit(main())
