# SPDX-License-Identifier: BSD-3-Clause
"""Run a WebAssembly program with WASI in the working folder: wasi.py PROGRAM [ARGUMENT...]."""

from __future__ import annotations

import sys

import wasmtime


def main() -> int:
    """Return the program's exit code."""
    engine = wasmtime.Engine()
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    store = wasmtime.Store(engine)
    wasi = wasmtime.WasiConfig()
    wasi.argv = ["etx-run", *sys.argv[2:]]
    wasi.inherit_stdout()
    wasi.preopen_dir(".", ".")
    store.set_wasi(wasi)
    instance = linker.instantiate(store, wasmtime.Module.from_file(engine, sys.argv[1]))
    start = instance.exports(store)["_start"]
    assert isinstance(start, wasmtime.Func)
    try:
        start(store)
    except wasmtime.ExitTrap as exit_trap:
        return int(exit_trap.code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
