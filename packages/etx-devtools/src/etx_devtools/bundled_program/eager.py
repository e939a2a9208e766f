# SPDX-License-Identifier: BSD-3-Clause
"""What a model in eager mode returns for test cases."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from etx_schema import EtxError

from etx_devtools.bundled_program.tensors import Bits

__all__ = ["answer"]


def answer(
    source: str, method: str, cases: Sequence[Sequence[Any]]
) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return cases and the model's outputs for each; without cases its example inputs are one.

    Every case meets the model as the factory made it. Needs torch and etx-exir.
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


def _tensor(torch: Any, value: Any) -> Any:
    if isinstance(value, Bits):
        signed = value.bits.view(value.bits.dtype.name.removeprefix("u"))
        return torch.from_numpy(signed.copy()).view(getattr(torch, value.dtype))
    if isinstance(value, torch.Tensor):
        return value.clone()
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
