# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a plugin (``etx/plugin.h``) as ctypes sees them."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator


class Kernel(c.Structure):
    """A row: name, function, signature, dtype bits."""

    _fields_ = (
        ("name", c.c_char_p),
        ("run", c.c_void_p),
        ("signature", c.c_char_p),
        ("dtypes", c.c_uint64),
    )


class Table(c.Structure):
    """Rows of one family."""

    _fields_ = (("rows", c.POINTER(Kernel)), ("count", c.c_size_t))


class Plugin(c.Structure):
    """What the entry point returns, as far as kernels go."""

    _fields_ = (
        ("struct_size", c.c_uint32),
        ("abi_major", c.c_uint16),
        ("abi_minor", c.c_uint16),
        ("name", c.c_char_p),
        ("version", c.c_char_p),
        ("tables", c.POINTER(c.POINTER(Table))),
        ("num_tables", c.c_size_t),
    )


def tables(library: c.CDLL) -> Iterator[list[Kernel]]:
    """Yield the rows of each family of a loaded plugin; valid as long as the library is."""
    entry = library.etx_plugin_v1
    entry.restype = c.POINTER(Plugin)
    plugin = entry().contents
    for i in range(plugin.num_tables):
        table = plugin.tables[i].contents
        yield table.rows[: table.count]


def rows(library: c.CDLL) -> Iterator[Kernel]:
    """Yield every row of a loaded plugin."""
    for table in tables(library):
        yield from table
