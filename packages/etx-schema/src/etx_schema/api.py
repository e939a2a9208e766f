# SPDX-License-Identifier: BSD-3-Clause
"""What the package exports; `etx_schema` imports it at the first use of one of its names."""

from pathlib import Path

from etx_schema._generated.flat_tensor import TensorLayout
from etx_schema._generated.program import *  # noqa: F403
from etx_schema._generated.program import __all__ as _tables
from etx_schema._version import __version__
from etx_schema.bundle import program_of, read_bundle, serialize_bundle
from etx_schema.codec import Blob, Table, UnknownMember
from etx_schema.decoder import decode, decode_size_prefixed
from etx_schema.dtypes import dtype_name, scalar_type, tensor_nbytes
from etx_schema.encoder import encode
from etx_schema.errors import (
    ContributionError,
    EtxError,
    EtxWarning,
    FileError,
    ProgramError,
    TargetError,
    UnknownFieldError,
)
from etx_schema.problem import Problem
from etx_schema.ptd import PtdFile, read_ptd, serialize_ptd, write_ptd
from etx_schema.pte import PteFile, serialize_pte, write_pte
from etx_schema.pte_reader import read_pte, tensors
from etx_schema.segments import NamedBlob
from etx_schema.targets.target import Target
from etx_schema.verifier import verify

__all__ = [
    "Blob",
    "ContributionError",
    "EtxError",
    "EtxWarning",
    "FileError",
    "NamedBlob",
    "Problem",
    "ProgramError",
    "PtdFile",
    "PteFile",
    "Table",
    "Target",
    "TargetError",
    "TensorLayout",
    "UnknownFieldError",
    "UnknownMember",
    "__version__",
    "decode",
    "decode_size_prefixed",
    "dtype_name",
    "encode",
    "fbs_dir",
    "program_of",
    "read_bundle",
    "read_ptd",
    "read_pte",
    "scalar_type",
    "serialize_bundle",
    "serialize_ptd",
    "serialize_pte",
    "tensor_nbytes",
    "tensors",
    "verify",
    "write_ptd",
    "write_pte",
    *_tables,
]


def fbs_dir() -> Path:
    """Return the folder of the schemas."""
    return Path(__file__).parent / "fbs"
