# SPDX-License-Identifier: BSD-3-Clause
"""The command `etx`: `show`, the commands of this package, and what other packages add."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from etx_schema import commands
from etx_schema._version import __version__
from etx_schema.entry_points import (
    contributions,
    describe,
    name_of,
    use,
    version_of,
    warn_of,
)
from etx_schema.errors import EtxError, ProgramError
from etx_schema.files import load_bytes
from etx_schema.streams import complain, flush, tolerant

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "etx.commands"

EXAMPLES = """\
examples:
  etx show model.pte                   what is in a file: methods, instructions, delegates, sizes
  etx show model.pte --json            the same for machines
  etx show weights.ptd                 tensors outside of a program
  etx memory model.pte -o model.svg    draw the planned memory: bytes over instructions
  etx check model.pte                      does it run here? exit code 1 says no
  etx targets                          the targets of the packages that are installed
  etx strip model.pte -o small.pte     without source lines and stack traces
"""


ELSEWHERE = {
    "backends": "etx-exir",
    "bench": "etx-runtime etx-kernels-portable",
    "compile": "etx-exir",
    "run": "etx-runtime etx-kernels-portable",
    "size": "etx-devtools",
}
"""Commands of other packages: the package that brings each, and what else it wants."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 when a check found problems, 2 on an error."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    with tolerant():
        try:
            code, problem, stop = _run(words), "", None
        except SystemExit as error:
            code, problem, stop = 0, "", error
        except EtxError as error:
            code, problem, stop = 2, str(error), None
        except BrokenPipeError:
            code, problem, stop = 0, "", None
        except OSError as error:
            lost = f"standard output cannot be written: {error.strerror}"
            code, problem, stop = 2, lost if error.filename is None else str(error), None
        except KeyboardInterrupt:
            code, problem, stop = 130, "stopped", None
        failure = flush(sys.stdout)
        if isinstance(failure, BrokenPipeError):
            return 0
        if failure is not None:
            code, stop = 2, None
            problem = f"standard output cannot be written: {failure.strerror}"
        if problem:
            complain(problem)
    if stop is not None:
        raise stop
    return code


def _run(words: list[str]) -> int:
    options = build_parser(*words[:1]).parse_args(words)
    return int(options.run(options) or 0)


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Build the parser of all installed commands, or of `command` alone where it is known.

    An entry point has the name of the command that it adds.
    """
    parser = _Parser(
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
    broken: dict[str, tuple[str, str]] = {}
    for entry in [entry for entry in added if entry.name == command] or added:
        if reasons := _contribute(parser, subparsers, entry):
            broken.setdefault(entry.name, reasons)
    for name in sorted(broken.keys() - subparsers.choices.keys()):
        _register_broken(subparsers, name, *broken[name])
    for name in sorted(ELSEWHERE.keys() - subparsers.choices.keys()):
        package = ELSEWHERE[name].split()[0]
        text = f"the command {name!r} comes with {package}, which is not installed in {sys.prefix}"
        problem = f"{text}; install {ELSEWHERE[name].replace(' ', ' and ')}"
        _register_broken(subparsers, name, f"comes with {package}", problem)
    return parser


def _contribute(
    parser: argparse.ArgumentParser, subparsers: Any, entry: EntryPoint
) -> tuple[str, str] | None:
    """Let a package add its command and nothing but that, else return why not: short and long."""
    commands = subparsers.choices
    before, rows = dict(commands), len(subparsers._choices_actions)
    reason = ""
    try:
        use(entry, subparsers)
        parser.format_help()
        commands[entry.name].format_help()
    except EtxError as error:
        reason = str(error)
    except Exception as error:
        reason = f"{entry.value}: {describe(error)}"
    if entry.name in before or commands.keys() != {*before, entry.name}:
        names = ", ".join(sorted({name for name in commands if name not in before})) or "nothing"
        reason = reason or f"{entry.value}: it adds {names}"
    if any(commands.get(name) is not found for name, found in before.items()):
        reason = reason or f"{entry.value}: it replaces another command"
    if not reason:
        return None
    commands.clear()
    commands.update(before)
    del subparsers._choices_actions[rows:]
    package = name_of(entry.dist)
    if entry.name in before:
        warn_of(f"a command {entry.name!r} is not added ({reason})", package)
    fix = f"; reinstall or remove {package}" if package else ""
    problem = f"the command {entry.name!r} does not load: {reason}{fix}"
    return f"not usable: {reason}", problem


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


def _register_broken(subparsers: Any, name: str, summary: str, problem: str) -> None:
    summary = summary.replace("%", "%%")
    parser = subparsers.add_parser(name, help=summary, add_help=False, prefix_chars="\0")
    parser.add_argument("rest", nargs="*")

    def run(_: argparse.Namespace) -> None:
        raise EtxError(problem)

    parser.set_defaults(run=run)


def _show(options: argparse.Namespace) -> None:
    from etx_schema.inspect.describe import describe_ptd, describe_pte
    from etx_schema.inspect.show import lines
    from etx_schema.ptd import read_ptd, read_ptd_root

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
    if sys.stdout is not None and sys.stdout.isatty():
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


class _Parser(argparse.ArgumentParser):
    """Says when standard output does not take the help; argparse ignores that."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is not None and file is sys.stdout:
            file.write(message)
        elif message:
            super()._print_message(message, file)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        for line in versions():
            print(line)
        parser.exit()


def versions() -> list[str]:
    """List the installed packages, what else they version (the plugin ABI), plugins, targets."""
    from importlib.metadata import distributions

    found = {name_of(each): each for each in distributions()}
    rows = {name: version_of(each) for name, each in found.items() if name.startswith("etx-")}
    rows.setdefault("etx-schema", __version__)
    lines = [f"{name} {rows[name]}" for name in sorted(rows)]
    lines += [f"{entry.name} ABI: {_load(entry)}" for entry in contributions("etx.abi")]
    for what, group in (("plugins", "etx.plugins"), ("targets", "etx.targets")):
        names = [_offered(entry) for entry in contributions(group)]
        lines.append(f"{what}: {', '.join(names) or 'none'}")
    return lines


def _offered(entry: EntryPoint) -> str:
    package = name_of(entry.dist)
    return f"{entry.name} ({package})" if package else entry.name


def _load(entry: EntryPoint) -> object:
    try:
        return entry.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"not known: {describe(error)}"


if __name__ == "__main__":
    sys.exit(main())
