# SPDX-License-Identifier: BSD-3-Clause
"""What a model in eager mode returns for test cases."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from etx_schema import Blob, EtxError, read_pte
from etx_schema import Tensor as WireTensor
from etx_schema.dtypes import dtype_name
from etx_schema.problem import DEBUG_KEY, read_json

from etx_devtools.bundled_program.tensors import Bits

__all__ = ["answer"]


def answer(
    source: str, method: str, cases: Sequence[Sequence[Any]], program: Blob | None = None
) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return cases and the model's outputs for each; without cases its example inputs are one.

    Every case meets the model as the factory made it. Needs torch and etx-exir. Errors: EtxError,
    too, where the factory makes other weights each time than those of `program`.
    """
    try:
        import torch
        from etx_exir.load_model import load_factory
        from torch.utils import _pytree as pytree
    except ImportError as error:
        raise EtxError(f"--eager needs etx-exir and torch ({error}); or give --expect") from error
    sources = load_factory(source)
    if method not in sources:
        raise EtxError(f"{source} has no method {method!r} (it has: {', '.join(sources)})")
    module, inputs, kwargs, _ = sources[method]
    changed = None if program is None else _other_weight(program, method, module)
    if changed is not None:
        again = load_factory(source)[method].module.state_dict()[changed]
        if not torch.equal(again, module.state_dict()[changed]):
            raise EtxError(
                f"{source} makes other weights each time that it is called, so that what it "
                f"returns is not what the file should: {changed!r} differs from the file's; call "
                "torch.manual_seed in it or load its weights, compile again, or give --expect"
            )
    example, spec = pytree.tree_flatten((inputs, kwargs))
    given = [list(case) for case in cases] or [copy.deepcopy(example)]
    outputs = []
    for index, case in enumerate(given):
        if len(case) != spec.num_leaves:
            raise EtxError(
                f"case {index}: {len(case)} inputs given, {source} takes {spec.num_leaves}"
            )
        args, keywords = pytree.tree_unflatten([_tensor(torch, value) for value in case], spec)
        try:
            with torch.no_grad():
                result = copy.deepcopy(module)(*args, **keywords)
        except Exception as error:
            text = f"{source}, case {index}: {type(error).__name__}: {error}"
            raise EtxError(text) from error
        outputs.append(pytree.tree_leaves(result))
    return given, outputs


def _other_weight(program: Blob, method: str, module: Any) -> str | None:
    """Return the name of a weight that a file has under the module's name with other values."""
    pte = read_pte(program)
    entry = read_json(pte.named_data, DEBUG_KEY).get(method)
    names = entry.get("constants") if isinstance(entry, dict) else None
    held = module.state_dict()
    plans = [plan for plan in pte.program.execution_plan if plan.name == method]
    if not plans or not isinstance(names, dict):
        return None
    for value in plans[0].values:
        tensor = value.val
        if not isinstance(tensor, WireTensor) or tensor.allocation_info is not None:
            continue
        name = names.get(str(tensor.data_buffer_idx))
        kept = held.get(name) if isinstance(name, str) else None
        if kept is None or not 0 < tensor.data_buffer_idx <= len(pte.constants):
            continue
        like = str(kept.dtype) == f"torch.{dtype_name(tensor.scalar_type)}"
        if like and list(kept.shape) == list(tensor.sizes):
            content = bytes(pte.constants[tensor.data_buffer_idx - 1])
            mine = kept.detach().contiguous().reshape(-1)
            if mine.numel() and _bytes(mine) != content[: mine.nbytes]:
                return str(name)
    return None


def _bytes(tensor: Any) -> bytes:
    import torch

    flat = tensor if tensor.dtype == torch.bool else tensor.view(torch.uint8)
    return bytes(flat.numpy().tobytes())


def _tensor(torch: Any, value: Any) -> Any:
    if isinstance(value, Bits):
        signed = value.bits.view(value.bits.dtype.name.removeprefix("u"))
        return torch.from_numpy(signed.copy()).view(getattr(torch, value.dtype))
    if isinstance(value, torch.Tensor):
        return value.clone()
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
