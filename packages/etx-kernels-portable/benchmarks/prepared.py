# SPDX-License-Identifier: BSD-3-Clause
"""Calls of kernels whose arguments are boxed once, to be timed."""

from __future__ import annotations

import ctypes as c
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
TESTS = FOLDER.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "support")]

from harness import KINDS, PLUGIN, Call, EtxContext, EtxValue  # noqa: E402
from integer_reference import pack, pack_groups, pack_int4  # noqa: E402

__all__ = ["FOLDER", "Prepared", "compiled", "pack", "pack_groups", "pack_int4"]


def compiled(source: Path, *options: str | Path) -> c.CDLL:
    """Compile C++ to a library and load it."""
    library = Path(tempfile.mkdtemp()) / f"{source.stem}.so"
    command = [os.environ.get("CXX", "c++"), "-std=c++17", "-O2", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*command, str(source), *map(str, options), "-o", str(library)], check=True)
    return c.CDLL(str(library))


class Prepared(Call):
    """A call that is made again and again; temporary memory comes from one arena.

    Outputs are given as tensors, which the kernel writes.
    """

    pool: c.CDLL | None = None

    def __init__(self, kernel: str, threads: int = 1):
        super().__init__(PLUGIN.kernels[kernel], threads, True)
        if Prepared.pool is None:
            Prepared.pool = compiled(FOLDER / "pool.cpp")
            Prepared.pool.pool_time.restype = c.c_int64
            Prepared.pool.pool_time.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p, c.c_int64]

    def context(self) -> Any:
        """Return a context whose functions are in C++, but the one that says what failed."""

        def fail(_: Any, status: int, reason: bytes) -> int:
            self.reason = reason.decode()
            return status

        members = {
            "allocate_temp": KINDS["allocate_temp"](("pool_allocate", self.pool)),
            "fail": KINDS["fail"](fail),
            "parallel_for": KINDS["parallel_for"](("pool_parallel_for", self.pool)),
            "kernel": self.kernel.row,
            "num_args": len(self.kernel.parameters),
            "is_cancelled": KINDS["is_cancelled"](lambda _: False),
        }
        self.kept.append(members)
        return EtxContext(struct_size=c.sizeof(EtxContext), num_threads=self.threads, **members)

    def prepare(self, *args: Any) -> Callable[[int], float]:
        """Return what calls the kernel so often and returns the seconds of all."""
        values = [
            EtxValue() if a is None else self.in_place(a) if p.written else self.value(p, a)
            for p, a in zip(self.kernel.parameters, args, strict=True)
        ]
        pointers = (c.POINTER(EtxValue) * len(values))(*map(c.pointer, values))
        context = self.context()
        self.kept += [values, pointers, context]
        run = c.cast(self.kernel.run, c.c_void_p)

        def call(count: int = 1) -> float:
            assert self.pool is not None
            spent = self.pool.pool_time(run, c.addressof(context), c.addressof(pointers), count)
            if spent < 0:
                raise SystemExit(f"{self.kernel.name}: {self.reason}")
            return float(spent) / 1e9

        return call

    def in_place(self, tensor: Any) -> EtxValue:
        """Box a tensor that the kernel writes."""
        self.kept.append(tensor)
        sizes = list(tensor.shape)
        dims = list(range(len(sizes)))
        return self.tensor_struct(tensor.data_ptr(), sizes, dims, tensor.dtype, tensor.numel())
