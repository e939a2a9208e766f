# SPDX-License-Identifier: BSD-3-Clause
"""The state of a method in an `.npz` file: an array for each buffer, by its name."""

from __future__ import annotations

import hashlib
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from etx_schema.files import write_atomically

from etx_runtime import bits
from etx_runtime.commands.samples import named_arrays
from etx_runtime.errors import InputError, MetadataError
from etx_runtime.runtime import Method

LONGEST = 200


def load_state(method: Method, path: str) -> None:
    """Write the buffers that the file holds; nothing is written where one does not fit."""
    if Path(path).suffix != ".npz":
        raise InputError(f"--load-state {path}: expected a .npz file")
    if not method.state_names:
        raise MetadataError(f"{path}: method {method.metadata.name()} has no buffers with names")
    dtypes = _dtypes(method)
    names = {member_of(name): name for name in dtypes}
    named = {names.get(member, member): array for member, array in named_arrays(path).items()}
    state = {name: bits.of_type(array, dtypes.get(name, "")) for name, array in named.items()}
    try:
        method.set_state(state)
    except (InputError, MetadataError) as error:
        raise type(error)(f"{path}: {error}", error.code) from error


def check_can_save(method: Method, path: str) -> None:
    """Raise for a path or a method that `save_state` refuses."""
    if Path(path).suffix != ".npz":
        raise InputError(f"--save-state {path}: expected a .npz file")
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
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{member_of(name)}.npy")
            with archive.open(member, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
    write_atomically(path, [buffer.getbuffer()])


def member_of(name: str) -> str:
    """Return what the array called `name` is called in an archive: itself where it is plain.

    Other characters are escaped as in an address (`%2F`), so that no member lies outside of the
    folder that an archive is unpacked to; a long name is cut and ends in a digest.
    """
    text = "".join(c if c.isalnum() or c in "_-." else quote(c, "", None, "replace") for c in name)
    if text.endswith(".npy"):
        text = f"{text[:-4]}%2Enpy"
    if len(text.encode()) <= LONGEST:
        return text or "%"
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{text[:32]}%{digest[:32]}"


def _dtypes(method: Method) -> dict[str, str]:
    meta = method.metadata
    infos = [meta.attribute_tensor_meta(index) for index in range(meta.num_attributes())]
    return {info.name(): info.dtype_name() for info in infos}
