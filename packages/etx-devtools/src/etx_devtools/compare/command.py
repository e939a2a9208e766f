# SPDX-License-Identifier: BSD-3-Clause
"""The command `etx compare`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from etx_schema import EtxError
from etx_schema.errors import naming
from etx_schema.numbers import real, whole
from etx_schema.outputs import OutputFile, refuse_clashes
from etx_schema.quantization_options import CHOICES, add_quantization_options

if TYPE_CHECKING:
    from etx_devtools.compare.report import Report

__all__ = ["add_quantization", "quantization", "register"]

NEEDS = "etx compare needs etx-runtime, kernels and etx-exir: install etx-devtools[run,aot]"
EXAMPLES = """\
examples:
  etx compare model.pte --eager net.py:net                     with the example inputs of net()
  etx compare model.pte --eager net.py:net --inputs real.npz   several sets of inputs: calls in turn
  etx compare model.pte --eager net.py:net --inside xnnpack    also what its delegates compute
  etx compare model.pte --eager net.py:net --inputs real.npz --etdump device.etdp
  etx compare model.pte --against int8.pte --inputs real.npz   with another program of the model
  etx compare model.pte --against net.pt2                      with an exported program
  etx compare model.pte --against-executorch PYTHON            with what ExecuTorch makes of it
  etx compare model.pte --executorch PYTHON --against-etdump device.etdp
  etx compare int8.pte --eager net.py:net --quantize int8 --calibrate images.npz
  etx compare net.pt2 --eager net.py:net                       what torch.export has made of it
  etx compare model.pte --eager net.py:net --json --fail-over 1e-4
"""


def register(subparsers: Any) -> None:
    """Add the command to `etx`."""
    parser = subparsers.add_parser(
        "compare",
        help="find the first instruction of a .pte file that is wrong",
        description="Run a program with all its values recorded and compare them with those of the "
        "model in eager PyTorch. Of each result two errors are told: what is made by its "
        "instruction (eager computes from the values that the device had before) and what is left "
        "of all errors before it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="a .pte file")
    parser.add_argument(
        "--eager",
        metavar="MODULE:FACTORY",
        help="what the file was compiled from, as for `etx compile`",
    )
    parser.add_argument(
        "--against",
        metavar="OTHER",
        help="compare with the values of another program of the same model: a .pte of another "
        "build, target or quantization (with --eager, on its example inputs), or a .pt2 of "
        "torch.export.save",
    )
    parser.add_argument(
        "--float",
        metavar="MODULE:FACTORY",
        help="the float model that the quantized one was made of (default with --quantize: what "
        "--eager returns): tell of each layer how much noise is by design, and how much the "
        "runtime adds",
    )
    add_quantization(parser)
    parser.add_argument(
        "--inputs",
        metavar="[NAME=]FILE",
        action="append",
        default=[],
        help=".npy or .npz; may be given several times; arrays for several calls are calls in turn",
    )
    parser.add_argument(
        "--random", metavar="SEED", type=whole(0), help="compare with random inputs"
    )
    _add_delegates(parser)
    _add_places(parser)
    parser.add_argument(
        "--method", help="default: all; of --inputs, dumps and what is written, forward or the only"
    )
    parser.add_argument(
        "--metric",
        metavar="MODULE:FUNCTION",
        action="append",
        default=[],
        help="also tell what this function of two arrays returns, got and expected; may be given "
        "several times",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--fail-over",
        metavar="X",
        type=real(0),
        help="exit with 1 when an output is farther than X from eager's; without it, when an "
        "instruction makes an error that rounding does not explain",
    )
    parser.set_defaults(run=run)


def add_quantization(parser: argparse.ArgumentParser) -> None:
    """Add the options of `quantization`."""
    text = "what `etx compile` was given: what --eager returns is quantized again so"
    add_quantization_options(parser, text, with_help=False)


def quantization(options: argparse.Namespace) -> Any:
    """Return how the model was quantized, or None."""
    from etx_devtools.compare.models import Quantization

    given = {name: getattr(options, name) for name in ("quantize", *CHOICES)}
    if options.quantize is None:
        wrong = [name for name, value in given.items() if value is not None]
        if wrong:
            raise EtxError(f"--{wrong[0].replace('_', '-')} goes with --quantize RECIPE")
        return None
    return Quantization(**given)


def _add_places(parser: argparse.ArgumentParser) -> None:
    ran = parser.add_mutually_exclusive_group()
    ran.add_argument(
        "--etdump",
        metavar="FILE",
        help="compare what a device recorded of these calls (`etx run --etdump FILE --values all`, "
        "its values beside it in FILE with the suffix .bin) instead of running the program here",
    )
    ran.add_argument(
        "--executorch",
        metavar="PYTHON",
        help="run the program on ExecuTorch's runtime, which this interpreter has",
    )
    other = parser.add_mutually_exclusive_group()
    other.add_argument(
        "--against-etdump",
        metavar="FILE",
        help="compare with what a device recorded of --against, or of the same file without it",
    )
    other.add_argument(
        "--against-executorch",
        metavar="PYTHON",
        help="run --against, or the same file without it, on ExecuTorch's runtime",
    )


def _add_delegates(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--inside",
        metavar="BACKEND",
        action="append",
        default=[],
        help="look into the delegates of this backend (a name that `etx backends` lists, or "
        "MODULE:PARTITIONER): the model is compiled again, with delegates that return all they "
        "compute; may be given several times",
    )
    parser.add_argument(
        "--bisect",
        metavar="BACKEND",
        help="find the node that is wrong inside the delegates of this backend by delegating less "
        "and less, where --inside would change what it does: log2(n) + 1 compilations",
    )
    parser.add_argument(
        "--bisect-log",
        type=OutputFile,
        metavar="FILE",
        help="keep the steps of --bisect in this file; those it has are not compiled again",
    )
    parser.add_argument(
        "--reduce",
        type=OutputFile,
        metavar="OUT.pte",
        help="write the first wrong instruction as a program of its own, and beside it its inputs "
        "(OUT.npz) and the right result (OUT.expected.npz)",
    )


def run(options: argparse.Namespace) -> int:
    """Run `etx compare`."""
    given = (options.file, options.against, options.etdump, options.against_etdump)
    try:
        with naming(*filter(None, given)), _metrics(options.metric):
            report = _compare(options)
    except ImportError as error:
        raise EtxError(f"{NEEDS} ({error})") from error
    if options.json:
        print(json.dumps(report.document(), indent=1))
    else:
        print(*report.lines(), sep="\n")
    if options.fail_over is not None:
        return int(not report.largest <= options.fail_over)
    return int(report.first is not None)


def _metrics(names: Sequence[str]) -> AbstractContextManager[None]:
    from etx_exir.load_model import load_function

    from etx_devtools.compare.metrics import measuring

    found = {name.rpartition(":")[2]: load_function(name, "a metric") for name in names}
    return measuring(found)


def _compare(options: argparse.Namespace) -> Report:
    from etx_devtools.compare.elsewhere import Ran
    from etx_devtools.compare.files import compare_files
    from etx_devtools.compare.models import is_exported
    from etx_devtools.compare.programs import compare_exported, compare_with_file

    if options.reduce:
        from etx_devtools.compare.reduce import names_beside

        options.beside = [OutputFile(str(name)) for name in names_beside(options.reduce)[1:]]
        refuse_clashes(vars(options).values())
    given = (options.inputs, options.method, options.random)
    ran = Ran(options.etdump, options.executorch)
    other_ran = Ran(options.against_etdump, options.against_executorch)
    other = options.against or (options.file if str(other_ran) else "")
    model = (other if is_exported(other) else "") if other else options.eager or ""
    if not other and not model:
        raise EtxError("compare with what? give --eager MODULE:FACTORY or --against OTHER.pte")
    if is_exported(options.file):
        if not model or str(ran) or str(other_ran):
            raise EtxError(
                f"{options.file} runs in eager PyTorch: give the .pte first, and --against "
                f"{options.file}"
            )
        return compare_exported(options.file, model, options.inputs, options.method)
    if not model:
        if options.inside or options.reduce or options.bisect:
            raise EtxError("--inside, --bisect and --reduce need the model: leave out --against")
        return compare_with_file(options.file, other, *given, options.eager, ran, other_ran)
    return compare_files(
        options.file,
        model,
        *given,
        options.inside,
        options.reduce,
        ran,
        options.bisect,
        options.bisect_log,
        options.float,
        quantization(options),
    )
