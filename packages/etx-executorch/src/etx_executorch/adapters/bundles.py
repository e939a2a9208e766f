# SPDX-License-Identifier: BSD-3-Clause
"""Bundled programs as bytes, `devtools.bundled_program.serialize`."""

from __future__ import annotations

from etx_devtools import BundledProgram
from etx_schema import read_bundle
from etx_schema._generated import bundled_program as tables

__all__ = [
    "deserialize_from_flatbuffer_to_bundled_program",
    "serialize_from_bundled_program_to_flatbuffer",
]


def serialize_from_bundled_program_to_flatbuffer(bundled_program: BundledProgram) -> bytes:
    """Return the bytes of the `.bpte`."""
    return bundled_program.serialize()


def deserialize_from_flatbuffer_to_bundled_program(flatbuffer: bytes) -> tables.BundledProgram:
    """Return the tables of a `.bpte`."""
    return read_bundle(flatbuffer)
