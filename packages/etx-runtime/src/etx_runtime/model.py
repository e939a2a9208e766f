# SPDX-License-Identifier: BSD-3-Clause
"""Call a program like the module it was exported from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from etx_runtime import pytree
from etx_runtime.errors import InputError
from etx_runtime.runtime import Method, Program, Runtime, Source


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

    @property
    def is_plain(self) -> bool:
        """Tell whether a call folds nothing: flat arguments in, one value or a tuple out."""
        out = self.outputs
        is_tuple = out is not None and out.kind == "builtins.tuple" and len(out.children) != 1
        return self.is_simple and (out is None or out.is_leaf or (is_tuple and out.is_flat))

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
        names = self._argument_names()
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
        is_named = len(names) >= count and all(names[:count])
        if self.inputs is not None and is_named and len(values) != count:
            takes = ", ".join([*names[:count], *(f"{name}=" for name in named)])
            absent = "".join(f"; '{name}' is missing" for name in names[len(values) : count][:1])
            raise InputError(f"the method takes ({takes}), got {len(args)} positional{absent}")
        return values

    def _argument_names(self) -> tuple[str, ...]:
        """Return the names of the positional arguments, of containers what comes before a path."""
        if self.inputs is None or self.is_simple:
            return self.names
        names, position = [], 0
        for child in self.inputs.children[0].children:
            leaf = self.names[position] if position < len(self.names) else ""
            names.append(leaf.partition("[")[0].partition(".")[0])
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
    """A program whose methods are called with nested arguments; loads each at its first call.

    Methods share the buffers that the file places alike in them. With `borrow` the results of a
    call are views that the next call of the method writes over.
    """

    def __init__(self, program: Program, borrow: bool = False) -> None:
        self.program = program
        self._borrow = borrow
        self._methods: dict[str, tuple[Method, Signature]] = {}
        self._plain: Callable[..., Any] | None = None

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
            others = [method for method, _ in self._methods.values()]
            method = self.program.load_method(name, share_state_with=others)
            signature = Signature(method)
            found = self._methods[name] = (method, signature)
            if name == "forward" and signature.is_plain:
                self._plain = method.flat_caller(self._borrow)
        return found

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call method `name` with the arguments its module took."""
        method, signature = self._get(name)
        flat = signature.flatten(args, kwargs)
        return signature.unflatten(method.execute(flat, borrow=self._borrow))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method `forward`."""
        if self._plain is not None and not kwargs:
            return self._plain(*args)
        return self.call("forward", *args, **kwargs)

    __call__ = forward

    def run_method(self, name: str, inputs: Sequence[Any] = ()) -> list[Any]:
        """Run method `name` on flat inputs and return flat outputs."""
        return self.method(name).execute(inputs, borrow=self._borrow)


def load(
    path: Source,
    *,
    data: Source | Sequence[Source] = (),
    data_paths: Sequence[Source] = (),
    borrow: bool = False,
) -> Model:
    """Load a program to call: ``model = load("model.pte"); y = model(x)``.

    `data` is a `.ptd` file, or several, with weights of the program: others give another model.
    """
    is_one = isinstance(data, (str, bytes, bytearray, memoryview)) or not isinstance(data, Sequence)
    files: Sequence[Any] = [data] if is_one else data  # type: ignore[assignment]
    return Model(Runtime.get().load_program(path, data_paths=[*files, *data_paths]), borrow)
