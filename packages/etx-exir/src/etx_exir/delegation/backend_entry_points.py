# SPDX-License-Identifier: BSD-3-Clause
"""Backends of installed packages: entry points `etx.backends`, `NAME = "module:function"`.

The function takes a list of compile specs and returns a partitioner.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from etx_schema import CompileSpec, ContributionError, EtxError
from etx_schema.entry_points import contributions, describe, name_of, use, version_of

from etx_exir.delegation.explain import table

__all__ = ["GROUP", "load_backend", "register"]

GROUP = "etx.backends"


def load_backend(text: str) -> Any:
    """Return the partitioner of `NAME` or `NAME:spec=value,spec=value`."""
    from etx_exir.delegation.backend import Partitioner

    name, _, rest = text.partition(":")
    specs = []
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise EtxError(f"--backend {text}: {item!r} is not a spec; expected spec=value")
        specs.append(CompileSpec(key, value.encode()))
    entries = {entry.name: entry for entry in reversed(contributions(GROUP))}
    if name not in entries:
        known = ", ".join(sorted(entries)) or "none"
        raise EtxError(
            f"no backend {name!r} is installed (installed: {known}); install its package, or name "
            "a partitioner with --partitioner"
        )
    try:
        made = use(entries[name], specs)
    except ContributionError as error:
        reason = error.__cause__ or error
        if isinstance(reason, EtxError):
            raise reason from None
        raise EtxError(
            f"backend {name!r} ({_package(entries[name])}) cannot be used: {describe(reason)}"
        ) from error
    if not isinstance(made, Partitioner):
        raise EtxError(
            f"backend {name!r}: {entries[name].value} returned {type(made).__name__}; expected an "
            "etx_exir.Partitioner"
        )
    return made


def register(subparsers: Any) -> None:
    """Add `etx backends`."""
    parser = subparsers.add_parser(
        "backends",
        help="list what programs can be delegated to",
        description="List the backends that `etx compile --backend NAME` knows.",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `etx backends`."""
    rows = [(entry.name, _package(entry), entry.value) for entry in contributions(GROUP)]
    heads = ("name", "package", "partitioner")
    if options.json:
        print(json.dumps([dict(zip(heads, row, strict=True)) for row in rows], indent=1))
    elif rows:
        print(table(rows, heads))
    else:
        print("no backend is installed")
    return 0


def _package(entry: Any) -> str:
    dist = getattr(entry, "dist", None)
    return f"{name_of(dist)} {version_of(dist)}".strip()
