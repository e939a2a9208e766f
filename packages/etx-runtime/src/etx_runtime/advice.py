# SPDX-License-Identifier: BSD-3-Clause
"""What to do about a method that cannot be loaded here."""

from __future__ import annotations

import re
from collections.abc import Iterator

from etx_runtime import _native, plugins
from etx_runtime.errors import LoadError

KERNELS = "etx-kernels-portable"
_GENERAL = re.compile(rf"; install or load a plugin that has (it|them) \({KERNELS} [^)]*\)")


def missing(program: _native.Program, method: str) -> tuple[list[str], list[str]]:
    """Return the operators and the backends of a method that the program cannot use, sorted."""
    meta = program.method_meta(method)
    usable = {name for name, is_usable in _native.backends() if is_usable}
    operators = set(meta.operator_names()) - set(program.available_operators())
    return sorted(operators), sorted(set(meta.backend_names()) - usable)


def advised(error: LoadError, program: _native.Program, method: str | None) -> LoadError:
    """Return `error` with advice where a kernel or backend is missing."""
    operators, backends = missing(program, method) if method is not None else ([], [])
    advice = [*_operators(operators), *_backends(backends)]
    if not advice:
        return error
    text = f"{_GENERAL.sub('', str(error))}; {'; '.join(advice)}"
    return LoadError(text, error.code, error.name, error.instruction, error.index)


def _operators(names: list[str]) -> Iterator[str]:
    if not names:
        return
    yield from plugins.left_out().values()
    if KERNELS not in {name for name, _ in plugins.loaded_plugins().values()}:
        them = "it" if len(names) == 1 else "them"
        yield f"install or load a plugin that has {them} ({KERNELS} holds the standard ones)"
        return
    if selected := list(_selections()):
        paths = ", ".join(selected)
        added = " ".join(f"--operator {name}" for name in names)
        yield f"{paths} holds a selection of the operators: add with `etx select {added}`"
        return
    from etx_schema.targets.advice import advise

    yield from advise(names, (), _native.operator_names())
    yield "or register a kernel before the load (etx_runtime.register_kernel)"


def _selections() -> Iterator[str]:
    for path, (_, version) in plugins.loaded_plugins().items():
        if version.endswith("+selected"):
            yield path


def _backends(names: list[str]) -> Iterator[str]:
    if names:
        from etx_schema.targets.advice import advise

        yield from advise((), names, _native.operator_names())
