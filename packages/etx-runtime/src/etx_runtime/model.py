# SPDX-License-Identifier: BSD-3-Clause
"""Call a program like the module it was exported from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etx_runtime import pytree
from etx_runtime.errors import InputError
from etx_runtime.runtime import Method, Path, Program, Runtime, Source


class Signature:
    """How the arguments and results of a method fold into flat lists."""

    def __init__(self, method: Method) -> None:
        meta = method.metadata
        self.names = method.input_names
        self.num_inputs = meta.num_inputs()
        self.inputs = _spec(meta.input_spec(), self.num_inputs)
        self.outputs = _spec(meta.output_spec(), meta.num_outputs())
        self.is_simple = self.inputs is None or (
            self.inputs.children[0].is_flat and not self.inputs.children[1].children
        )

    def flatten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the flat inputs of a call."""
        if self.is_simple and not kwargs:
            return list(args)
        if self.inputs is None:
            return self._by_name(args, kwargs, self.num_inputs, [])
        positional, named = self.inputs.children
        values = self._by_name(args, kwargs, len(positional.children), list(named.keys))
        given = {key: kwargs[key] for key in named.keys if key in kwargs}
        flat = list(pytree.flatten(values, positional, "args"))
        return flat + list(pytree.flatten(given, named, "kwargs"))

    def _by_name(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], count: int, named: list[str]
    ) -> list[Any]:
        """Fill positional arguments up with keywords of their names."""
        names = self.names if self.inputs is None or self.is_simple else self._leaf_names()
        values = list(args)
        for name in names[len(args) : count]:
            if name not in kwargs:
                break
            values.append(kwargs[name])
        known = {*names[len(args) : len(values)], *named}
        unknown = [name for name in kwargs if name not in known]
        if unknown:
            expected = ", ".join([*names[:count], *named]) or "no keyword"
            raise InputError(f"unknown argument '{unknown[0]}'; the method takes: {expected}")
        return values

    def _leaf_names(self) -> tuple[str, ...]:
        """Return the names of the positional arguments, empty for containers."""
        names, position = [], 0
        assert self.inputs is not None
        for child in self.inputs.children[0].children:
            at = self.names[position] if position < len(self.names) else ""
            names.append(at if child.is_leaf else "")
            position += pytree.count_leaves(child)
        return tuple(names)

    def unflatten(self, outputs: list[Any]) -> Any:
        """Return the results of a call as the module would."""
        if self.outputs is None:
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        return pytree.unflatten(iter(outputs), self.outputs)


def _spec(text: str | None, count: int) -> pytree.Spec | None:
    """Parse a spec; None where the file has none or it does not fit the flat values."""
    if not text:
        return None
    spec = pytree.parse(text)
    return spec if pytree.count_leaves(spec) == count else None


class Model:
    """A program whose methods are called with nested arguments; loads each at its first call."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._methods: dict[str, tuple[Method, Signature]] = {}

    @property
    def method_names(self) -> set[str]:
        """Names of the methods."""
        return self.program.method_names

    def method(self, name: str = "forward") -> Method:
        """Return a method as it is used by calls."""
        return self._get(name)[0]

    def _get(self, name: str) -> tuple[Method, Signature]:
        found = self._methods.get(name)
        if found is None:
            method = self.program.load_method(name)
            found = self._methods[name] = (method, Signature(method))
        return found

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call method `name` with the arguments its module took."""
        method, signature = self._get(name)
        return signature.unflatten(method.execute(signature.flatten(args, kwargs)))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method `forward`."""
        return self.call("forward", *args, **kwargs)

    __call__ = forward

    def run_method(self, name: str, inputs: Sequence[Any] = ()) -> list[Any]:
        """Run method `name` on flat inputs and return flat outputs."""
        return self.method(name).execute(inputs)


def load(path: Source, *, data_paths: Sequence[Path] = ()) -> Model:
    """Load a program to call: ``model = load("model.pte"); y = model(x)``."""
    return Model(Runtime.get().load_program(path, data_paths=data_paths))
