# SPDX-License-Identifier: BSD-3-Clause
"""Call a program like the module it was exported from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from etx_runtime import foreign, pytree
from etx_runtime.errors import ExecutionError, InputError
from etx_runtime.runtime import BackendOptions, Method, Program, Runtime, Source


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
        if unknown and unknown[0] in names[: len(args)]:
            raise InputError(f"argument '{unknown[0]}' is given by position and by name")
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

    Those with weights in `.ptd` files `load` loads at once, which shows that all are there.

    Methods share the buffers that the file places alike in them. With `borrow` the results of a
    call are views that the next call of the method writes over.
    """

    def __init__(
        self,
        program: Program,
        borrow: bool = False,
        outputs: str | None = None,
        backend_options: BackendOptions | None = None,
    ) -> None:
        self.program = program
        self._backend_options = backend_options
        self._borrow = borrow
        self._outputs = outputs
        self._convert = _converter(outputs, borrow)
        self._methods: dict[str, tuple[Method, Signature]] = {}
        self._plain: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return "\n".join(["Model", *(f"  {row}" for row in self.program.describe())])

    def __reduce__(self) -> Any:
        """Pickle the program by its path, or its bytes, and the values of the buffers."""
        named = [(name, method) for name, (method, _) in self._methods.items()]
        states = {name: _packed(method) for name, method in named if method.state_names}
        options = self._backend_options
        return _restore, (self.program, self._borrow, self._outputs, states, options)

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
            method = self.program.load_method(
                name, share_state_with=others, backend_options=self._backend_options
            )
            signature = Signature(method)
            found = self._methods[name] = (method, signature)
            if name == "forward" and signature.is_plain:
                self._plain = _converted(method.flat_caller(self._borrow), self._convert)
        return found

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call method `name` with the arguments its module took."""
        method, signature = self._get(name)
        flat = signature.flatten(args, kwargs)
        return signature.unflatten(self._execute(method, flat))

    def _execute(self, method: Method, inputs: Sequence[Any]) -> list[Any]:
        outputs = method.execute(inputs, borrow=self._borrow)
        return outputs if self._convert is None else [self._convert(value) for value in outputs]

    def forward(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the method `forward`."""
        if self._plain is not None and not kwargs:
            return self._plain(*args)
        return self.call("forward", *args, **kwargs)

    __call__ = forward

    def run_method(self, name: str, inputs: Sequence[Any] = ()) -> list[Any]:
        """Run method `name` on flat inputs and return flat outputs."""
        return self._execute(self.method(name), inputs)


def _converter(outputs: str | None, borrow: bool) -> Callable[[Any], Any] | None:
    """Return what makes an output what was asked for, None where it is that already."""
    if outputs is None:
        return None
    if outputs == "numpy":
        return foreign.to_numpy
    if outputs != "torch":
        raise ValueError(f"outputs: expected 'numpy' or 'torch', got {outputs!r}")
    if borrow:
        raise ValueError("borrow lends read-only memory, which torch cannot; leave one of both out")
    if find_spec("torch") is None:
        raise ModuleNotFoundError("outputs='torch' needs torch, which is not installed here")
    return foreign.to_torch


def _converted(
    call: Callable[..., Any], convert: Callable[[Any], Any] | None
) -> Callable[..., Any]:
    if convert is None:
        return call

    def converted(*inputs: Any) -> Any:
        found = call(*inputs)
        return tuple(map(convert, found)) if isinstance(found, tuple) else convert(found)

    return converted


def _packed(method: Method) -> dict[str, Any]:
    """Return the buffers that have memory; those left to the caller may have none."""
    state = {}
    for name in method.state_names:
        try:
            state[name] = method.get_attribute(name)
        except ExecutionError:
            continue
    return state


def _restore(
    program: Program,
    borrow: bool,
    outputs: str | None,
    states: dict[str, dict[str, Any]],
    backend_options: BackendOptions | None = None,
) -> Model:
    model = Model(program, borrow, outputs, backend_options)
    for name, state in states.items():
        model.method(name).set_state(state)
    return model


def load(
    path: Source,
    *,
    data: Source | Sequence[Source] = (),
    data_paths: Sequence[Source] = (),
    borrow: bool = False,
    outputs: str | None = None,
    mmap: bool = True,
    kernels: str | Sequence[str] = (),
    backend_options: BackendOptions | None = None,
) -> Model:
    """Load a program to call: ``model = load("model.pte"); y = model(x)``.

    `data` is a `.ptd` file, or several, with weights of the program: others give another model.
    `outputs="torch"` gives tensors; `"numpy"` gives nothing but NumPy's arrays: bfloat16 and float8
    as types of ml_dtypes where it is installed, else as float32. Without either, these are
    `ForeignArray`s.

    With `mmap=False` files are read rather than mapped, and may change once this has returned.

    `kernels="aten"` computes with torch's operators (etx-kernels-aten), `["portable", "aten"]` only
    what the portable kernels lack; else the kernels are those of all plugins.

    `backend_options` are what is asked of backends, by name, when a method is loaded; a backend
    says in its LoadError what it does not know. With them all methods are loaded at once.

    Errors: LoadError where the file is not valid, or a kernel, a backend or a weight of any of its
    methods is missing: kernels in Python are registered before.
    """
    is_one = isinstance(data, (str, bytes, bytearray, memoryview)) or not isinstance(data, Sequence)
    files: Sequence[Any] = [data] if is_one else data  # type: ignore[assignment]
    program = Runtime.get().load_program(
        path, data_paths=[*files, *data_paths], mmap=mmap, kernels=kernels
    )
    model = Model(program, borrow, outputs, backend_options)
    program.check_methods()
    for name in sorted(program.method_names):
        if backend_options or program.native.method_meta(name).num_external_tensors():
            model.method(name)
    return model
