# SPDX-License-Identifier: BSD-3-Clause
"""`etx compile --quantize`: the model is quantized by an installed package before it is captured.

The package offers a function by an entry point `etx.quantizers`. It is called with a module and a
list of calls, and with recipe, target_sqnr, dynamic_shapes, progress and int8_io by name, where
they are given also with group_size and keep_float. It returns the quantized module and a report
with `document`, `svg`, `rich` and a text, with int8_io also `edges`. Warnings of the package's own
classes are printed.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from etx_schema import EtxError, EtxWarning
from etx_schema.calls import Place
from etx_schema.calls import read_calls as calls_of_files
from etx_schema.entry_points import contributions, describe, name_of
from etx_schema.outputs import OutputOrDash
from etx_schema.quantization_options import CHOICES, add_quantization_options
from torch import Tensor
from torch.utils import _pytree as pytree

from etx_exir.load_model import Source
from etx_exir.progress import Progress

__all__ = ["add_options", "check_options", "quantize_sources", "read_calls", "write_report"]

GROUP = "etx.quantizers"
PACKAGE = "etx-quant"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of quantization."""
    group = add_quantization_options(parser, f"with the package {PACKAGE}", with_help=True)
    group.add_argument(
        "--quantize-report",
        type=OutputOrDash,
        metavar="FILE",
        help="write what each layer lost as .json or .svg; - prints a table",
    )


def check_options(options: argparse.Namespace) -> None:
    """Refuse options that do not go together, before anything is loaded."""
    if options.quantize is None:
        for name in (*CHOICES, "quantize_report"):
            if getattr(options, name) is not None:
                flag = f"--{name.replace('_', '-')}"
                raise EtxError(f"{flag} goes with --quantize; name a recipe, e.g. --quantize int8")
        return
    if options.quantize == "int8" and options.calibrate is None:
        raise EtxError(
            "--quantize int8 takes the ranges of activations from data: give calls of the model "
            "with --calibrate FILE.npz, or use --quantize int8-dynamic"
        )
    if options.group_size is not None and options.quantize != "int4":
        raise EtxError(f"--group-size goes with --quantize int4; {options.quantize} has no groups")
    if options.group_size is not None and options.group_size < 1:
        raise EtxError(f"--group-size {options.group_size}: expected a number above 0")
    if options.int8_io and options.quantize != "int8":
        raise EtxError(
            f"--int8-io goes with --quantize int8; {options.quantize} reads inputs in float"
        )
    report = options.quantize_report
    if report not in (None, "-") and Path(report).suffix not in (".json", ".svg"):
        raise EtxError(f"--quantize-report {report}: expected a name ending in .json or .svg, or -")
    _quantizer()


def quantize_sources(
    sources: Mapping[str, Source], options: argparse.Namespace, progress: Progress
) -> tuple[dict[str, Source], Any]:
    """Return the sources with the module quantized, and the report."""
    if len(sources) != 1:
        raise EtxError(
            f"--quantize takes a model with one method, this one has {', '.join(sources)}; "
            f"quantize each with {PACKAGE.replace('-', '_')} where the model is made"
        )
    ((name, source),) = sources.items()
    calls = _example(source)
    if options.calibrate is not None:
        calls = read_calls(Path(options.calibrate), source)
    quantizer = _quantizer()
    given = {n: v for n in ("group_size", "keep_float") if (v := getattr(options, n)) is not None}
    try:
        with _warnings_of(quantizer, f"--quantize {options.quantize}"):
            module, report = quantizer(
                source.module,
                calls,
                recipe=options.quantize,
                target_sqnr=options.target_sqnr,
                dynamic_shapes=source.dynamic_shapes,
                progress=progress,
                int8_io=options.int8_io or False,
                **given,
            )
    except ValueError as error:
        raise EtxError(f"--quantize {options.quantize}: {_with_flags(str(error))}") from error
    source = source._replace(module=module)
    return {name: _with_integers(source, report) if options.int8_io else source}, report


def _with_flags(text: str) -> str:
    """Write options of the package's functions as those of the command."""
    text = re.sub(r"int8_io='(inputs|outputs)'", r"--int8-\1", text)
    text = re.sub(r"keep_float=\['([^']*)'\]", r"--keep-float \1", text)
    return re.sub(rf"\b({'|'.join(CHOICES)})\b", lambda n: f"--{n[0].replace('_', '-')}", text)


@contextmanager
def _warnings_of(quantizer: Any, place: str) -> Iterator[None]:
    """Turn the package's own warnings into ours, which the command prints as lines."""
    package = quantizer.__module__.partition(".")[0]
    plain = warnings.showwarning
    with warnings.catch_warnings():

        def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
            if category.__module__.partition(".")[0] == package:
                message, category = EtxWarning(f"{place}: {message}"), EtxWarning
            plain(message, category, *rest)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _with_integers(source: Source, report: Any) -> Source:
    """Return the source with example inputs in int8 where the module takes them so."""
    inputs = {edge.index: edge for edge in report.edges if edge.kind == "input"}
    leaves, spec = pytree.tree_flatten((source.inputs, source.kwargs))
    for i, edge in inputs.items():
        numbers = torch.round(leaves[i] / edge.scale) + edge.zero_point
        leaves[i] = numbers.clamp(-128, 127).to(torch.int8)
    args, kwargs = pytree.tree_unflatten(leaves, spec)
    return source._replace(inputs=args, kwargs=kwargs)


def write_report(report: Any, path: str) -> None:
    """Write the report of a quantization, or print it for `-`."""
    if path == "-":
        _print(report)
        return
    import json

    from etx_schema.files import write_atomically

    text = report.svg() if path.endswith(".svg") else json.dumps(report.document(), indent=1)
    write_atomically(path, [text.encode()])


def _print(report: Any) -> None:
    """Print a table, in colours on a terminal."""
    if sys.stdout.isatty():
        with suppress(ImportError):
            from rich.console import Console

            Console().print(report.rich())
            return
    print(report)


def _quantizer() -> Any:
    entries = contributions(GROUP)
    if not entries:
        raise EtxError(f"--quantize comes with {PACKAGE}, which is not installed; install it")
    try:
        return entries[0].load()
    except Exception as error:
        raise EtxError(
            f"--quantize: {name_of(entries[0].dist)} does not load: {describe(error)}"
        ) from error


def _example(source: Source) -> list[Any]:
    if not source.kwargs:
        return [source.inputs]
    names = _parameters(source)
    return [{**dict(zip(names, source.inputs, strict=False)), **source.kwargs}]


def _parameters(source: Source) -> list[str]:
    return list(inspect.signature(source.module.forward).parameters)


def read_calls(path: Path, source: Source) -> list[Any]:
    """Return the calls that the arrays of a file are, as tuples, or dicts of keyword inputs."""
    (example,) = _example(source)
    named = example
    if not isinstance(example, dict):
        named = dict(zip(_padded(_parameters(source), len(example)), example, strict=True))
    leaves, tree = pytree.tree_flatten_with_path(named)
    tensors = {i: like for i, (_, like) in enumerate(leaves) if isinstance(like, Tensor)}
    names = {i: _flat_name(leaves[i][0]) for i in tensors}
    places = [Place(names[i], tuple(like.shape)) for i, like in tensors.items()]
    calls = []
    for arrays in calls_of_files([str(path)], places, must_fit=True):
        values = [leaf for _, leaf in leaves]
        for place, (i, like) in enumerate(tensors.items()):
            values[i] = _converted(f"{path}, input {names[i]!r}", arrays[place], like)
        call = pytree.tree_unflatten(values, tree)
        calls.append(call if isinstance(example, dict) else tuple(call.values()))
    return calls


def _flat_name(path: pytree.KeyPath) -> str:
    """Return what torch.export calls an input inside of an argument: `features_left`, `pair_0`."""
    return "_".join(re.findall(r"\w+", pytree.keystr(path)))


def _padded(names: Sequence[str], length: int) -> list[str]:
    return [names[i] if i < len(names) else f"input_{i}" for i in range(length)]


def _converted(place: str, array: Any, like: Tensor) -> Tensor:
    try:
        value = torch.from_numpy(array)
    except TypeError as error:
        raise EtxError(f"{place}: torch has no dtype {array.dtype}") from error
    if value.is_floating_point() != like.is_floating_point():
        raise EtxError(f"{place}: it is {array.dtype}, the model's input is {like.dtype}")
    return value.to(like.dtype)
