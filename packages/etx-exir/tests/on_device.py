# SPDX-License-Identifier: BSD-3-Clause
"""Run files with the runtime and compare what comes out with eager mode, containers included."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Mapping

import etx_runtime
import numpy as np
import running
import torch
from etx_exir import to_edge
from etx_schema import read_pte
from torch import nn
from torch.utils import _pytree as pytree


class Function(nn.Module):
    """A function of positional and keyword arguments as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def export(module, inputs, kwargs=None, **options):
    module = module if isinstance(module, nn.Module) else Function(module)
    return torch.export.export(copy.deepcopy(module).eval(), inputs, kwargs, **options)


def lowered(module, inputs, kwargs=None, config=None, **options):
    return to_edge(export(module, inputs, kwargs, **options)).to_executorch(config)


def on_device(value):
    """Return nested inputs with arrays for tensors."""
    return pytree.tree_map(lambda x: x.numpy() if isinstance(x, torch.Tensor) else x, value)


def operators(buffer):
    """Return the names of the operators that the file's instructions call, in order."""
    return running.operators(read_pte(buffer))


def assert_same(got, expected, path="result"):
    """Compare values, and the types and keys of containers."""
    if isinstance(expected, torch.Tensor):
        expected = expected.detach().numpy()
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), path
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=path)
    elif isinstance(expected, Mapping):
        assert type(got) is type(expected), path
        assert list(got) == list(expected), path
        assert getattr(got, "default_factory", 0) is getattr(expected, "default_factory", 0), path
        for key in expected:
            assert_same(got[key], expected[key], f"{path}[{key!r}]")
    elif isinstance(expected, (list, tuple, deque)):
        assert type(got) is type(expected), path
        assert getattr(got, "maxlen", None) == getattr(expected, "maxlen", None), path
        assert len(got) == len(expected), path
        for i, (a, b) in enumerate(zip(got, expected, strict=True)):
            assert_same(a, b, f"{path}[{i}]")
    else:
        assert type(got) is type(expected), path
        assert got == expected, path


def agree(module, *calls, **options):
    """Export with the first call's inputs; the file must do in all calls what eager does."""
    module = module if isinstance(module, nn.Module) else Function(module)
    manager = lowered(module, calls[0], **options)
    model = etx_runtime.load(manager.buffer)
    eager = copy.deepcopy(module).eval()
    for inputs in calls:
        got = model(*on_device(copy.deepcopy(inputs)))
        assert_same(got, eager(*copy.deepcopy(inputs)))
    return manager
