# SPDX-License-Identifier: BSD-3-Clause
"""Calls single kernels of the plugin through its C interface, with torch tensors for memory."""

from __future__ import annotations

import ctypes as c
import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from abi import ABI
from arguments import (
    DTYPES,
    FORMATS,
    Out,
    Over,
    Parameter,
    Same,
    Slot,
    dim_order_of,
    parse_signature,
)
from etx_kernels_portable._tables import rows
from provider import PROVIDER
from record import Recorder

ERRORS = {
    0x01: "Internal",
    0x02: "InvalidState",
    0x10: "NotSupported",
    0x11: "NotImplemented",
    0x12: "InvalidArgument",
    0x13: "InvalidType",
    0x21: "MemoryAllocationFailed",
}
NUMBERS = ABI.numbers
TENSOR, STRING = NUMBERS["ETX_TAG_TENSOR"], NUMBERS["ETX_TAG_STRING"]
DOUBLE, INT, BOOL = (NUMBERS[f"ETX_TAG_{kind}"] for kind in ("DOUBLE", "INT", "BOOL"))
LIST_BOOL, LIST_DOUBLE, LIST_INT, LIST_TENSOR, LIST_OPTIONAL = (
    NUMBERS[f"ETX_TAG_LIST_{kind}"]
    for kind in ("BOOL", "DOUBLE", "INT", "TENSOR", "OPTIONAL_TENSOR")
)
DYNAMIC_BOUND = 1
CANARY = 64
LARGE = 2**28
GARBAGE = 0x7B
GUARD = 4096
UNTOUCHED = bytes([GARBAGE]) * GUARD


EtxTensor: Any = ABI.structs["etx_tensor"]
EtxValue: Any = ABI.structs["etx_value"]
EtxIntList: Any = ABI.structs["etx_int_list"]
EtxContext: Any = ABI.structs["etx_context"]
KINDS = dict(EtxContext._fields_)
RUN = ABI.types["etx_kernel_fn"]
RANDOM: Any = ABI.structs["etx_random"]()
"""The random numbers of all calls, as of one method."""


class KernelError(Exception):
    """A kernel returned an error."""

    def __init__(self, kernel: str, code: int, reason: str | None):
        self.error = ERRORS.get(code, hex(code))
        self.reason = reason
        super().__init__(f"{kernel}: {self.error}: {reason}")


@dataclass(frozen=True)
class Kernel:
    name: str
    run: Callable[..., int]
    parameters: list[Parameter]
    dtypes: int
    row: int

    def lists(self, dtype: torch.dtype) -> bool:
        return self.dtypes == 0 or bool(self.dtypes >> DTYPES[dtype] & 1)


class Plugin:
    """The shared library under test."""

    def __init__(self, path: str):
        self.library = c.CDLL(path)
        self.kernels = {kernel.name: kernel for kernel in self._rows()}
        self.called: set[str] = set()
        self.is_divided = False  # whether the last call gave work to several threads

    def _rows(self) -> Iterator[Kernel]:
        for row in rows(self.library):
            signature = parse_signature(row.signature.decode())
            name, run = row.name.decode(), RUN(row.run)
            yield Kernel(name, run, signature, row.dtypes, c.addressof(row))

    def call(self, name: str, *args: Any, threads: int = 2, temp: bool = True) -> list[Any]:
        """Run a kernel; return what it wrote: tensors of Out, in-place tensors, and slots."""
        kernel = self.kernels[name]
        if len(args) != len(kernel.parameters):
            raise TypeError(f"{name} takes {len(kernel.parameters)} arguments, not {len(args)}")
        call = Call(kernel, threads, temp)
        results: list[Any] = []
        try:
            results = call.run(args)
        finally:
            RECORDER.record(kernel.name, kernel.parameters, args, results)
        self.called.add(name)
        self.is_divided = call.is_divided
        return results

    def view(
        self, name: str, tensor: torch.Tensor, size: Sequence[int] | int, shape: Sequence[int]
    ) -> tuple[int, list[int]]:
        """Run a view into an output of at most `shape`; return where it points and its sizes."""
        call = Call(self.kernels[name], 1, True)
        call.run([tensor, size, Out(shape, tensor.dtype, slack=0)])
        self.called.add(name)
        struct = next(k for k in reversed(call.kept) if isinstance(k, EtxTensor))
        return struct.data, struct.sizes[: struct.rank]


def reserved(length: int) -> torch.Tensor:
    """Return zero bytes that take memory only where they are touched."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return torch.frombuffer(mmap.mmap(-1, length, flags=flags), dtype=torch.uint8)


def garbage(length: int) -> torch.Tensor:
    """Return the memory of an output; of a large one, only the end is garbage."""
    if length < LARGE:
        return torch.full((length,), GARBAGE, dtype=torch.uint8)
    memory = reserved(length)
    memory[-CANARY:] = GARBAGE
    return memory


def strides_of(sizes: Sequence[int], dim_order: Sequence[int]) -> list[int]:
    strides = [0] * len(sizes)
    step = 1
    for d in reversed(dim_order):
        strides[d] = step
        step *= max(sizes[d], 1)
    return strides


def address_of(kept: object) -> int | None:
    return kept.data_ptr() if isinstance(kept, torch.Tensor) else None


@dataclass
class Call:
    """One call: owns all memory that the kernel sees."""

    kernel: Kernel
    threads: int
    temp: bool
    reason: str | None = None
    is_divided: bool = False
    kept: list[Any] = field(default_factory=list)
    guards: list[int] = field(default_factory=list)
    """Addresses before and behind temporary memory."""
    results: list[Callable[[], Any]] = field(default_factory=list)

    def run(self, args: Sequence[Any]) -> list[Any]:
        values: list[EtxValue] = []
        for parameter, arg in zip(self.kernel.parameters, args, strict=True):
            if isinstance(arg, Same):
                values.append(values[arg.index])
            elif isinstance(arg, Over):
                values.append(self.over(values[arg.index]))
            else:
                values.append(self.value(parameter, arg))
        pointers = (c.POINTER(EtxValue) * max(len(values), 1))(*map(c.pointer, values))
        context = self.context()
        code = self.kernel.run(c.addressof(context), c.addressof(pointers))
        if any(c.string_at(guard, GUARD) != UNTOUCHED for guard in self.guards):
            raise AssertionError(f"{self.kernel.name} wrote outside of its temporary memory")
        if code:
            raise KernelError(self.kernel.name, code, self.reason)
        return [result() for result in self.results]

    def context(self) -> Any:
        def allocate(_: Any, size: int, alignment: int) -> int | None:
            if not self.temp:
                return None
            memory = c.create_string_buffer(GUARD + alignment + size + GUARD)
            self.kept.append(memory)
            begin = c.addressof(memory) + GUARD
            begin += -begin % alignment
            for guard in (begin - GUARD, begin + size):
                c.memset(guard, GARBAGE, GUARD)
                self.guards.append(guard)
            return begin

        def fail(_: Any, status: int, reason: bytes) -> int:
            self.reason = reason.decode()
            return status

        def parallel(_: Any, begin: int, end: int, grain: int, body: Any, user: int) -> None:
            middle = min(end, begin + max(grain, (end - begin) // 2))
            body(user, begin, middle)
            if middle < end:
                self.is_divided = True
                body(user, middle, end)

        members = {
            "allocate_temp": KINDS["allocate_temp"](allocate),
            "fail": KINDS["fail"](fail),
            "parallel_for": KINDS["parallel_for"](parallel),
            "kernel": self.kernel.row,
            "num_args": len(self.kernel.parameters),
            "is_cancelled": KINDS["is_cancelled"](lambda _: False),
            "random": c.addressof(RANDOM),
        }
        self.kept.append(members)
        return EtxContext(struct_size=c.sizeof(EtxContext), num_threads=self.threads, **members)

    def value(self, parameter: Parameter, arg: Any) -> EtxValue:
        if isinstance(arg, Slot):
            return self.slot()
        if arg is None:
            if not parameter.optional:
                raise TypeError(f"{self.kernel.name}: an argument must not be None")
            return EtxValue()
        return BOXES[parameter.letter](self, parameter, arg)

    def slot(self) -> EtxValue:
        value = EtxValue()

        def read() -> Any:
            kinds = {INT: "as_int", DOUBLE: "as_double", BOOL: "as_bool"}
            return getattr(value.payload, kinds[value.tag])

        self.results.append(read)
        return value

    def number(self, parameter: Parameter, arg: Any) -> EtxValue:
        value = EtxValue()
        arg = DTYPES.get(arg, arg) if isinstance(arg, torch.dtype) else FORMATS.get(arg, arg)
        if isinstance(arg, torch.Tensor):
            arg = arg.item()
        if parameter.letter == "b" or (parameter.letter == "s" and isinstance(arg, bool)):
            value.tag, value.payload.as_bool = BOOL, bool(arg)
        elif parameter.letter == "d" or isinstance(arg, float):
            value.tag, value.payload.as_double = DOUBLE, float(arg)
        else:
            value.tag, value.payload.as_int = INT, int(arg)
        return value

    def pointing(self, tag: int, target: Any, count: int = 0) -> EtxValue:
        self.kept.append(target)
        value = EtxValue()
        value.tag, value.count = tag, count
        value.payload.as_tensor = c.addressof(target)
        return value

    def string(self, _: Parameter, arg: str) -> EtxValue:
        data = arg.encode()
        return self.pointing(STRING, c.create_string_buffer(data), len(data))

    def ints(self, _: Parameter, arg: Sequence[int] | int) -> EtxValue:
        items = [arg] if isinstance(arg, int) else list(arg)
        array = (c.c_int64 * max(len(items), 1))(*items)
        return self.pointing(LIST_INT, EtxIntList(array, None), len(items))

    def doubles(self, _: Parameter, arg: Sequence[float] | float) -> EtxValue:
        items = [arg] if isinstance(arg, float) else list(arg)
        return self.pointing(LIST_DOUBLE, (c.c_double * max(len(items), 1))(*items), len(items))

    def bools(self, _: Parameter, arg: Sequence[bool]) -> EtxValue:
        return self.pointing(LIST_BOOL, (c.c_bool * max(len(arg), 1))(*arg), len(arg))

    def tensors(self, parameter: Parameter, arg: Sequence[torch.Tensor | None]) -> EtxValue:
        values = [EtxValue() if t is None else self.tensor(parameter, t) for t in arg]
        array = (c.POINTER(EtxValue) * max(len(values), 1))(*map(c.pointer, values))
        self.kept.append(values)
        tag = LIST_TENSOR if parameter.letter == "L" else LIST_OPTIONAL
        return self.pointing(tag, array, len(values))

    def tensor(self, parameter: Parameter, arg: torch.Tensor | Out | float) -> EtxValue:
        if isinstance(arg, Out):
            return self.out(arg)
        if isinstance(arg, (int, float)):
            arg = torch.tensor(arg)
        order = dim_order_of(arg)
        memory = arg.contiguous() if order is None else arg
        if parameter.written:
            memory = memory.clone()
            self.results.append(lambda: memory)
        self.kept.append(memory)
        sizes = list(memory.shape)
        dims = order or list(range(len(sizes)))
        return self.tensor_struct(memory.data_ptr(), sizes, dims, memory.dtype, memory.numel())

    def tensor_struct(
        self, address: int, sizes: list[int], dims: list[int], dtype: torch.dtype, capacity: int
    ) -> EtxValue:
        rank = len(sizes)
        numel = 1
        for size in sizes:
            numel *= size
        arrays = (
            (c.c_int32 * max(rank, 1))(*sizes),
            (c.c_int32 * max(rank, 1))(*strides_of(sizes, dims)),
            (c.c_uint8 * max(rank, 1))(*dims),
        )
        struct = EtxTensor(address, *arrays, numel, capacity, DTYPES[dtype], rank, DYNAMIC_BOUND)
        return self.pointing(TENSOR, struct)

    def over(self, value: EtxValue) -> EtxValue:
        tensor = EtxTensor.from_address(value.payload.as_tensor)
        given = tensor.data
        memory = next(k for k in self.kept if address_of(k) == given).clone()
        for kept in self.kept:
            if isinstance(kept, EtxTensor) and kept.data == given:
                kept.data = memory.data_ptr()
        self.results.append(lambda: memory)
        return self.pointing(TENSOR, EtxTensor.from_buffer_copy(tensor))

    def out(self, spec: Out) -> EtxValue:
        sizes = [size + spec.slack for size in spec.shape]
        dims = list(range(len(sizes))) if spec.dim_order is None else list(spec.dim_order)
        capacity = 1
        for size in sizes:
            capacity *= size
        length = capacity * spec.dtype.itemsize
        memory = garbage(length + CANARY)
        self.kept.append(memory)
        value = self.tensor_struct(memory.data_ptr(), sizes, dims, spec.dtype, capacity)
        struct = self.kept[-1]

        def read() -> torch.Tensor:
            if not bool((memory[length:] == GARBAGE).all()):
                raise AssertionError(f"{self.kernel.name} wrote past the end of an output")
            shape = [struct.sizes[d] for d in range(struct.rank)]
            data = memory[: struct.numel * spec.dtype.itemsize].view(spec.dtype)
            return data.as_strided(shape, strides_of(shape, dims)).clone()

        self.results.append(read)
        return value


BOXES: dict[str, Callable[[Call, Parameter, Any], EtxValue]] = {
    "T": Call.tensor,
    "L": Call.tensors,
    "O": Call.tensors,
    "I": Call.ints,
    "D": Call.doubles,
    "B": Call.bools,
    "c": Call.string,
    "i": Call.number,
    "d": Call.number,
    "b": Call.number,
    "s": Call.number,
    "v": Call.number,
}

RECORDER = Recorder()
PLUGIN = Plugin(PROVIDER.library)
