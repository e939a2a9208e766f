# SPDX-License-Identifier: BSD-3-Clause
"""The state of a method in an `.npz` file: an array for each buffer, by its name."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from etx_schema.files import write_atomically

from etx_runtime import bits
from etx_runtime.errors import InputError, MetadataError
from etx_runtime.runtime import Method
from etx_runtime.samples import read_arrays


def load_state(method: Method, path: str) -> None:
    """Write the buffers that the file holds; nothing is written where one does not fit."""
    if Path(path).suffix != ".npz":
        raise InputError(f"{path}: state is read from .npz files")
    if not method.state_names:
        raise MetadataError(f"{path}: method {method.metadata.name()} has no buffers with names")
    read_arrays(path)
    with np.load(path, allow_pickle=False) as content:
        arrays = {key: content[key] for key in content.files}
    dtypes = _dtypes(method)
    state = {name: bits.of_type(array, dtypes.get(name, "")) for name, array in arrays.items()}
    try:
        method.set_state(state)
    except (InputError, MetadataError) as error:
        raise type(error)(f"{path}: {error}", error.code) from error


def check_can_save(method: Method, path: str) -> None:
    """Raise for a path or a method that `save_state` refuses."""
    if Path(path).suffix != ".npz":
        raise InputError(f"{path}: state is written to .npz files")
    if not method.state_names:
        raise MetadataError(f"method {method.metadata.name()} has no buffers with names to save")


def save_state(method: Method, path: str) -> None:
    """Write all buffers; the file is there whole, or as it was before."""
    check_can_save(method, path)
    arrays = {name: bits.as_numpy(value) for name, value in method.get_state().items()}
    write_npz(path, arrays)


def write_npz(path: str | Path, arrays: dict[str, Any]) -> None:
    """Write arrays by name; the file is there whole, or as it was before."""
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_atomically(path, [buffer.getbuffer()])


def _dtypes(method: Method) -> dict[str, str]:
    meta = method.metadata
    infos = [meta.attribute_tensor_meta(index) for index in range(meta.num_attributes())]
    return {info.name(): info.dtype_name() for info in infos}
