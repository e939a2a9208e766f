# SPDX-License-Identifier: BSD-3-Clause
"""Every operator that PyTorch tags as core compiles and runs, by a kernel or a decomposition, in a
file with ETX's own kernels and in one that ExecuTorch runs as well."""

from __future__ import annotations

import etx_runtime
import pytest
import torch
from core_calls import CALLS
from etx_exir import ExecutorchBackendConfig, to_edge
from on_device import Function, assert_same, export, on_device
from torch.utils import _pytree as pytree

DRAWN = "random"
aten = torch.ops.aten


def core_overloads():
    found = set()
    for schema in torch._C._jit_get_all_schemas():
        namespace, name = schema.name.split("::")
        if namespace == "aten" and hasattr(aten, name):
            overload = getattr(getattr(aten, name), schema.overload_name or "default", None)
            if overload is not None and torch.Tag.core in overload.tags:
                found.add(overload)
    return found


def made(op, args, tensors):
    """Make a call with these tensors in the places of the call's own."""
    given = pytree.tree_map(lambda x: next(tensors) if isinstance(x, torch.Tensor) else x, args)
    if op is aten.atan2.out:
        return op(*given, out=torch.empty(given[0].shape))
    keywords = given.pop() if isinstance(given[-1], dict) else {}
    mutable = [a.alias_info is not None and a.alias_info.is_write for a in op._schema.arguments]
    values = (x.clone() if writes else x for x, writes in zip(given, mutable, strict=False))
    return op(*values, **keywords)


def program_of(calls):
    def forward(*tensors):
        rest = iter(tensors)
        return [made(op, args, rest) for op, *args in calls]

    leaves = pytree.tree_leaves([args for _, *args in calls])
    dense = torch.contiguous_format  # ExecuTorch takes no transposed input
    tensors = (x.clone(memory_format=dense) for x in leaves if isinstance(x, torch.Tensor))
    return Function(forward), tuple(tensors)


def test_each_has_a_call():
    named = [op for calls in CALLS.values() for op, *_ in calls]
    assert len(named) == len(set(named)) == 193
    assert set(named) == core_overloads()


@pytest.mark.parametrize("group", CALLS)
def test_each_compiles_and_runs(group):
    module, inputs = program_of(CALLS[group])
    exported, expected = export(module, inputs), module(*inputs)
    for target in ("etx", "executorch"):
        config = ExecutorchBackendConfig(target=target)
        model = etx_runtime.load(to_edge(exported).to_executorch(config).buffer)
        found = model(*on_device(inputs))
        if group == DRAWN:
            assert pytree.tree_map(shape, found) == pytree.tree_map(shape, expected), target
        else:
            assert_same(found, pytree.tree_map(plain, expected), target)


def shape(x):
    return tuple(x.shape), str(x.dtype).removeprefix("torch.")


def plain(x):
    return bool(x) if isinstance(x, torch.SymBool) else x
