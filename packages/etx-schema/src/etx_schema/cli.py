# SPDX-License-Identifier: BSD-3-Clause
"""The command `etx`: `show`, the commands of this package, and what other packages add."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from etx_schema.commands import check, memory, show, strip, targets
from etx_schema.commands.contributed import add_contributed
from etx_schema.commands.versions import Version
from etx_schema.errors import EtxError
from etx_schema.outputs import refuse_clashes
from etx_schema.streams import complain, flush, tolerant

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
        except MemoryError as error:
            what = str(error) or "for this"
            code, problem, stop = 2, f"there is not enough memory ({what})", None
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
    refuse_clashes(vars(options).values())
    return int(options.run(options) or 0)


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Build the parser of all installed commands, or only of `command` where it is known."""
    parser = _Parser(
        prog="etx",
        description="Look at, check and (with other packages) make and run .pte files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="list what is installed")
    parser.set_defaults(run=lambda _: parser.print_help())
    subparsers = parser.add_subparsers(metavar="COMMAND")
    for module in (show, check, targets, memory, strip):
        module.register(subparsers)
    add_contributed(parser, subparsers, command)
    return parser


class _Parser(argparse.ArgumentParser):
    """Says when standard output does not take the help; argparse ignores that."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is not None and file is sys.stdout:
            file.write(message)
        elif message:
            super()._print_message(message, file)


if __name__ == "__main__":
    sys.exit(main())
