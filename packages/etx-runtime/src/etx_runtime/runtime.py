# SPDX-License-Identifier: BSD-3-Clause
"""Load programs and execute their methods."""

from __future__ import annotations

import io
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from etx_runtime import _native, origins, plugins
from etx_runtime._native import MethodMeta, TensorInfo
from etx_runtime.bundles import unwrapped
from etx_runtime.errors import InputError, LoadError, MetadataError
from etx_runtime.values import (
    TENSOR_TAG,
    RequiredBytes,
    ValueInfo,
    describe_inputs,
    describe_outputs,
)

if TYPE_CHECKING:
    from etx_runtime.constraints import Constraints
    from etx_runtime.recorder import Recorder

__all__ = [
    "BackendRegistry",
    "Method",
    "MethodMeta",
    "OperatorRegistry",
    "Program",
    "Runtime",
    "TensorInfo",
    "Verification",
]

Path = str | os.PathLike[str]
Source = Path | bytes | bytearray | memoryview | BinaryIO
BackendOptions = Mapping[str, Mapping[str, bool | int | str]]
"""What is asked of backends: ``{"XnnpackBackend": {"weight_cache_limit": 512}}``."""


class Verification(Enum):
    """How much of a file is checked: Minimal trusts it."""

    Minimal = 0
    InternalConsistency = 1


class Method:
    """A method with its memory; used by one thread at a time. Buffers keep their values."""

    def __init__(
        self,
        program: Program,
        name: str,
        sharing: Sequence[Method] = (),
        backend_options: BackendOptions | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self._program = program
        self.constraints = program.constraints_of(name)
        try:
            self._native: _native.Method = _native.Method(
                program.native,
                name,
                list(self.constraints.names),
                partial(origins.describe_origin, program.native, name),
                self.constraints.check if self.constraints else None,
                [method._native for method in sharing],
                _checked(backend_options or {}),
                None if recorder is None else recorder.native,
            )
        except LoadError as error:
            raise program.advised(error, name) from error.__cause__
        self._execute = self._native.caller(False)
        self._borrow = self._native.caller(True)

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, x)) for x in (self.inputs, self.outputs))
        return f"Method {self.metadata.name()}({inputs}) -> {outputs or None}"

    def __reduce__(self) -> Any:
        raise TypeError("a method has memory of its own; pickle its Program, or a Model")

    def index_bounds(self) -> dict[int, int]:
        """Return how many integers from 0 on an input that indexes a table may hold, by position.

        The program is read again, from where it was loaded.
        """
        return self._program.index_bounds(self.metadata.name())

    @property
    def metadata(self) -> MethodMeta:
        """What the file says of the method."""
        return self._native.method_meta()

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the flat inputs; empty when the file has none."""
        return self.constraints.names

    def execute(self, inputs: Sequence[Any], *, borrow: bool = False) -> list[Any]:
        """Run the method on its flat inputs and return its flat outputs.

        Inputs are NumPy arrays (of ml_dtypes, too), objects with DLPack or the buffer protocol with
        any strides, numbers, strings and None. Outputs are new NumPy arrays; types that NumPy lacks
        come as objects with ``__dlpack__``. With `borrow` they are read-only views of the method's
        memory where it owns an output: valid until the next call, which writes over them; they keep
        the memory alive, so that reading later is safe, but yields other values.

        A program that writes to an input which is not planned (`alloc_graph_input=False`) writes to
        the array given, as eager mode would; one that it cannot write to in place is refused.
        """
        return self._borrow(inputs) if borrow else self._execute(inputs)

    __call__ = execute

    def trace(self, inputs: Sequence[Any], recorder: Recorder, executions: int = 1) -> list[Any]:
        """Execute as `execute` does, while `recorder` records each instruction, or the failing one.

        With more `executions` than one each begins with the same inputs, state goes on, and what
        the first returned is returned.
        Its events within delegates are those of backends that were told to prepare for it: load the
        method with the recorder, too.
        """
        if executions < 1:
            raise ValueError(f"executions: expected at least 1, got {executions}")
        return self._native.trace(list(inputs), recorder.native, executions - 1)

    def profile(self, inputs: Sequence[Any]) -> tuple[list[Any], list[tuple[int, str, int]]]:
        """Execute, and return the outputs and (instruction, operator, nanoseconds) of each step."""
        return self._native.profile(list(inputs))

    def time_executions(self, inputs: Sequence[Any], iterations: int) -> list[int]:
        """Execute once, then `iterations` times; return nanoseconds of each of these.

        The clock runs in C++ around only the execution, without the conversion of arrays: the
        inputs are set before each.
        """
        return self._native.time_executions(list(inputs), iterations)

    def input_value(self, index: int) -> Any:
        """Return the value that input `index` holds: of a number, the one given at export."""
        return self._native.input_value(index)

    def flat_caller(self, borrow: bool = False) -> Callable[..., Any]:
        """Return a function of the flat inputs that returns the output, or a tuple of several.

        It is the shortest way to call the method from Python.
        """
        return self._native.flat_caller(borrow)

    @property
    def inputs(self) -> tuple[ValueInfo, ...]:
        """Names, types, shapes and bounds of the flat inputs."""
        return describe_inputs(self.metadata, self.constraints)

    @property
    def outputs(self) -> tuple[ValueInfo, ...]:
        """Names, types and largest shapes of the flat outputs."""
        return describe_outputs(self.metadata)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Fully qualified names of the mutable buffers that the file names."""
        meta = self.metadata
        infos = (meta.attribute_tensor_meta(index) for index in range(meta.num_attributes()))
        return tuple(dict.fromkeys(info.name() for info in infos))

    def reset_state(self) -> None:
        """Put the initial values back into the method's buffers."""
        self._native.reset_state()

    def get_state(self) -> dict[str, Any]:
        """Return copies of the mutable buffers by name."""
        return {name: self._native.get_attribute(name) for name in self.state_names}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Write buffers by name, some or all; nothing is written where one does not fit."""
        self._check_names(state)
        has_memory = [name for name in state if self._native.has_attribute(name)]
        before = {name: self._native.get_attribute(name) for name in has_memory}
        try:
            for name, value in state.items():
                self._native.set_attribute(name, value)
        except InputError:
            for name, value in before.items():
                self._native.set_attribute(name, value)
            raise

    def bind_state(self, state: Mapping[str, Any]) -> None:
        """Let writable arrays be the memory of buffers, which are read and written there.

        For buffers that the file leaves to the caller (of `alloc_mutable_buffers=False`); these
        need memory before the first execution, of an array or what `set_state` writes. The arrays
        are kept alive.
        """
        self._check_names(state)
        for name, array in state.items():
            self._native.bind_attribute(name, array)

    def _check_names(self, state: Mapping[str, Any]) -> None:
        known = self.state_names
        unknown = [name for name in state if name not in known]
        if unknown:
            names = ", ".join(known) or "none"
            raise MetadataError(f"the method has no buffer '{unknown[0]}' (it has: {names})")

    def get_attribute(self, name: str) -> Any:
        """Return a copy of a mutable buffer by its fully qualified name."""
        return self._native.get_attribute(name)

    def cancel(self) -> None:
        """End the running execution with an ExecutionError of code 0x40, from any thread.

        Where none is running it ends the next one. Ctrl-C does the same in the main thread and
        raises KeyboardInterrupt there.
        """
        self._native.cancel()

    def seed(self, seed: int) -> None:
        """Begin the random numbers with those of `seed`, from 0 to 2**64 - 1; loading takes 0.

        Equal seeds give equal numbers on any machine and number of threads. `reset_state` does not.
        """
        if not 0 <= seed < 2**64:
            raise ValueError(f"seed: expected 0 to 2**64 - 1, got {seed}")
        self._native.seed(seed)

    def kernel_rows(self) -> list[str]:
        """Return what runs each instruction: a plugin's name, then the conditions of its row.

        Rows are general, or special to dtypes and dim orders; empty where there is no kernel.
        """
        return self._native.kernel_rows()

    def set_instruction_budget(self, instructions: int) -> None:
        """End executions that jump backwards after so many instructions (10 million unless set)."""
        self._native.set_instruction_budget(instructions)

    def memory_bytes(self) -> dict[str, int]:
        """Return the bytes in use: planned arenas, method arena, largest scratch so far."""
        native = self._native
        return {
            "planned": native.planned_bytes(),
            "method": native.method_bytes(),
            "temp": native.temp_bytes(),
        }


class Program:
    """A verified program; immutable, so threads may share it."""

    def __init__(self, native: _native.Program, origin: tuple[Any, ...] = ()) -> None:
        self.native = native
        self._origin = origin
        self._constraints: dict[str, Constraints] | None = None

    def __repr__(self) -> str:
        place = self._origin[0] if self._origin else None
        source = f" of {place!r}" if isinstance(place, str) else ""
        return "\n".join([f"Program{source}", *(f"  {row}" for row in self.describe())])

    def describe(self) -> Iterator[str]:
        """Yield a line for each method: its name, inputs and outputs with dtypes and shapes."""
        for name in sorted(self.method_names):
            inputs = ", ".join(map(str, self.inputs(name)))
            yield f"{name}({inputs}) -> {', '.join(map(str, self.outputs(name))) or None}"

    def __reduce__(self) -> Any:
        """Pickle where the program comes from: a path, which must be there, or the bytes."""
        if not self._origin:
            raise TypeError("a Program is pickled if it comes from Runtime.load_program")
        return _load_again, _portable(*self._origin)

    def index_bounds(self, name: str) -> dict[int, int]:
        """Return how many integers from 0 on the inputs of method `name` may hold, by position."""
        from etx_schema import read_pte
        from etx_schema.inspect.index_bounds import index_bounds

        plans = read_pte(self._origin[0]).program.execution_plan if self._origin else ()
        return next((index_bounds(plan) for plan in plans if plan.name == name), {})

    def advised(self, error: LoadError, name: str) -> LoadError:
        """Return `error` of loading method `name`, with advice where kernels are missing."""
        from etx_runtime import advice

        known = name in self.method_names
        return advice.advised(error, self.native, name if known else None)

    def check_methods(self) -> None:
        """Raise LoadError for each method whose kernels or backends are not there, in one."""
        from etx_runtime import advice

        errors = []
        names = [n for n in sorted(self.method_names) if any(advice.missing(self.native, n))]
        for name in names:
            try:
                self.load_method(name)
            except LoadError as error:
                errors.append(error)
        if not errors:
            return
        if len(errors) == 1:
            raise errors[0]
        text = "; ".join(f"method {n}: {e}" for n, e in zip(names, errors, strict=False))
        raise LoadError(text, errors[0].code, errors[0].name) from errors[0]

    def constraints_of(self, name: str) -> Constraints:
        """Return what the program asks of the inputs of method `name`."""
        from etx_runtime import constraints

        if self._constraints is None:
            self._constraints = constraints.read(self.native.named_data(constraints.KEY))
        found = self._constraints.get(name, constraints.Constraints())
        if not found.bounds or name not in self.method_names:
            return found
        meta = self.native.method_meta(name)
        tensors = (i for i in range(meta.num_inputs()) if meta.input_tag(i) == TENSOR_TAG)
        infos = {index: meta.input_tensor_meta(index) for index in tensors}
        return found.with_shapes({i: x.sizes() for i, x in infos.items() if x.is_dynamic()})

    @property
    def method_names(self) -> set[str]:
        """Names of the methods."""
        return set(self.native.method_names())

    def load_method(
        self,
        name: str,
        *,
        share_state_with: Sequence[Method] = (),
        backend_options: BackendOptions | None = None,
        recorder: Recorder | None = None,
    ) -> Method:
        """Resolve the kernels of method `name` and place its tensors in memory of its own.

        Buffers that the file places alike in `share_state_with`, loaded methods of this program,
        are the same memory, keep their values, and are reset together. Such methods are used by one
        thread at a time. A backend refuses keys and types of `backend_options` that it does not
        know; options of one that the method does not use do nothing. `recorder` records the load;
        `Method.trace` records executions.
        """
        if any(method._program.native is not self.native for method in share_state_with):
            raise LoadError(
                "share_state_with: expected methods of the same program, got one of another program"
            )
        return Method(self, name, share_state_with, backend_options, recorder)

    def method_meta(self, name: str) -> MethodMeta:
        """Return what the file says of method `name`."""
        if name not in self.method_names:
            known = ", ".join(sorted(self.method_names))
            raise MetadataError(f"the program has no method '{name}' (it has: {known})")
        return self.native.method_meta(name)

    metadata = method_meta

    def inputs(self, name: str = "forward") -> tuple[ValueInfo, ...]:
        """Names, types, shapes and bounds of the flat inputs of a method that is not loaded."""
        return describe_inputs(self.method_meta(name), self.constraints_of(name))

    def outputs(self, name: str = "forward") -> tuple[ValueInfo, ...]:
        """Names, types and largest shapes of the flat outputs of a method that is not loaded."""
        return describe_outputs(self.method_meta(name))

    def required_bytes(self, name: str = "forward") -> RequiredBytes:
        """Return the memory that loading method `name` takes, before it is loaded."""
        meta = self.method_meta(name)
        return RequiredBytes(meta.required_bytes(), tuple(meta.memory_planned_buffer_sizes()))

    def named_data(self, key: str) -> bytes | None:
        """Return the bytes that the file stores under `key`, or None."""
        return self.native.named_data(key)


class BackendRegistry:
    """The backends of the loaded plugins."""

    @property
    def registered_backend_names(self) -> list[str]:
        """Names of all backends."""
        plugins.load_installed()
        return list(dict(_native.backends()))

    def is_available(self, backend_name: str) -> bool:
        """Tell whether a backend is there and works on this machine."""
        plugins.load_installed()
        return dict(reversed(_native.backends())).get(backend_name, False)


class OperatorRegistry:
    """The kernels of the loaded plugins."""

    @property
    def operator_names(self) -> set[str]:
        """Names of all operators, with overload."""
        plugins.load_installed()
        return set(_native.operator_names())


def _checked(options: BackendOptions) -> list[tuple[str, str, bool | int | str]]:
    """Return backend, key and value of each option; LoadError where one is of another type."""
    found = []
    if not isinstance(options, Mapping):
        raise LoadError(f"backend_options: expected a mapping by backend, got {options!r}")
    for backend, values in options.items():
        if not isinstance(values, Mapping):
            raise LoadError(f"backend_options[{backend!r}]: expected a mapping, got {values!r}")
        for key, value in values.items():
            value = os.fsdecode(value) if isinstance(value, os.PathLike) else value
            is_int = isinstance(value, int) and -(2**63) <= value < 2**63
            if not is_int and not isinstance(value, str):
                raise LoadError(
                    f"backend_options[{backend!r}][{key!r}]: expected a bool, an int of 64 bits or "
                    f"a str, got {value!r}"
                )
            found.append((backend, key, value))
    return found


def _map(source: Any) -> Any:
    """Return a mapping of the rest of a file that is open only for reading, else `source`."""
    raw = source.raw if isinstance(source, io.BufferedReader) else source
    if not isinstance(raw, io.FileIO) or raw.writable():
        return source
    try:
        rest = memoryview(mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ))[source.tell() :]
        source.seek(0, io.SEEK_END)
    except (OSError, ValueError):
        return source
    return rest


def _content(source: Any, may_map: bool) -> Any:
    """Return a path as text, else an object with the buffer protocol."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fsdecode(source)
        try:
            if b"\0" not in os.fsencode(path):
                return path
        except UnicodeEncodeError:
            pass
        raise LoadError(f"no file can have this name: {path!r}")
    if isinstance(source, io.TextIOBase):
        raise LoadError(f"{type(source).__name__} reads text; open the file with mode 'rb'")
    if getattr(source, "closed", False) is True:
        raise LoadError(f"{type(source).__name__} is closed; load before it is closed")
    content = _map(source) if may_map else source
    if content is source and hasattr(source, "read") and not isinstance(source, mmap.mmap):
        content = source.read()
    try:
        view = memoryview(content).cast("B")
        return view if _is_fixed(view.obj) else memoryview(bytes(view))
    except TypeError as error:
        kind = type(source).__name__
        raise LoadError(
            f"a program or its data is a path, bytes, or a binary file object, got {kind}"
            + (f" that reads {type(content).__name__}" if content is not source else "")
        ) from error


def _is_fixed(owner: Any) -> bool:
    """Tell whether nobody can write to an object's memory: that of bytes or a read-only mapping."""
    while owner is not None and not isinstance(owner, (bytes, mmap.mmap)):
        owner = getattr(owner, "base", getattr(owner, "obj", None))
    return owner is not None and memoryview(owner).readonly


def _portable(content: Any, weights: list[Any], *options: Any) -> tuple[Any, ...]:
    """Return what another process can load: paths, and bytes."""
    sources = [each if isinstance(each, str) else bytes(each) for each in (content, *weights)]
    return sources[0], sources[1:], *options


def _absolute(content: Any) -> Any:
    return os.path.abspath(content) if isinstance(content, str) else content


def _load_again(
    content: Any, weights: list[Any], verification: Verification, mmap: bool, kernels: list[str]
) -> Program:
    return Runtime.get().load_program(
        content, data_paths=weights, verification=verification, mmap=mmap, kernels=kernels
    )


class Runtime:
    """The way in: ``Runtime.get().load_program("model.pte")``."""

    _instance: Runtime | None = None

    def __init__(self) -> None:
        self.backend_registry = BackendRegistry()
        self.operator_registry = OperatorRegistry()

    @staticmethod
    def get() -> Runtime:
        """Return the runtime of this process."""
        if Runtime._instance is None:
            Runtime._instance = Runtime()
        return Runtime._instance

    def load_program(
        self,
        data: Source,
        *,
        verification: Verification = Verification.InternalConsistency,
        data_paths: Sequence[Source] = (),
        mmap: bool = True,
        kernels: str | Sequence[str] = (),
    ) -> Program:
        """Load a program from a path, from bytes or from a binary file object.

        A file is mapped and must not be cut short or written to in place while it is in use (that
        ends the process); a rename over it is safe. So is a file object of `open(path, "rb")`, from
        its position to its end. With `mmap=False` they are read, all at once, and may change then.
        Another file object is read to its end. Either may be closed. Read-only memory (bytes, a
        mapping) is kept alive and not copied where it is aligned to 16; what somebody could write
        to (bytearray, a read-only view of one) is copied, so that what was verified stays.
        Of a bundled program (`.bpte`) the `.pte` in it is loaded.
        `data_paths` are the `.ptd` files that hold weights of the program, from the same sources;
        they live as long as the program.

        `kernels` are the libraries whose kernels methods use, by the names that packages offer
        ("portable", "aten"), of equal operators the first; without them those of all plugins.
        """
        plugins.load_installed()
        names = [kernels] if isinstance(kernels, str) else list(kernels)
        chosen = plugins.open_kernels(names)
        verify = verification is not Verification.Minimal
        weights = [_content(source, mmap) for source in data_paths]
        content = _content(data, mmap)
        origin = (_absolute(content), list(map(_absolute, weights)), verification, mmap, names)
        content = unwrapped(content, mmap)
        if isinstance(content, str):
            return Program(_native.load_file(content, mmap, verify, weights, chosen), origin)
        return Program(_native.load_buffer(content, mmap, verify, weights, chosen), origin)

    def load_plugin(self, path: Path) -> tuple[str, str]:
        """Load a kernel or backend library and return its name and version."""
        return plugins.load_plugin(path)
