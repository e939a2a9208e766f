# SPDX-License-Identifier: BSD-3-Clause
"""What the compiler writes, the runtime loads and executes as eager does; `etx check` agrees.

`ETX_SEED` repeats what a run drew; its header names it.
"""

from __future__ import annotations

import copy
import os
import warnings

import etx_runtime
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.target.check import load_target
from etx_schema import EtxError, read_pte
from torch._ops import OpOverload
from torch.utils._pytree import tree_flatten

SEED = int(os.environ.get("ETX_SEED", "0"))
TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 6e-2, torch.float64: 1e-6, torch.bool: 0}
NARROW = (torch.float16, torch.bfloat16, torch.complex32)


def drawn(name: str, default: int) -> int:
    """Return how many of something to draw; `nox -s exported` says it by environment."""
    return int(os.environ.get(name, default))


def lowered(program, target="etx"):
    """Return the file of an exported program; raises what the compiler raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return to_edge(program).to_executorch(ExecutorchBackendConfig(target=target)).buffer


def loaded(buffer):
    """Load a file that the compiler wrote; `etx check` must have nothing against it."""
    assert list(map(str, load_target("etx").check(read_pte(buffer)))) == []
    return etx_runtime.load(buffer, outputs="torch")


def executed(model, inputs):
    return [torch.as_tensor(part) for part in tree_flatten(model(*inputs))[0]]


def kept(program, eager, calls):
    """Lower an exported program and compare calls in a row with `eager`.

    False where the compiler refuses, with an error of its own: any other exception is a defect. A
    call that eager refuses may end in an error of the runtime's own.
    """
    try:
        buffer = lowered(program)
    except EtxError as error:
        if "cannot be decomposed" in str(error):
            raise
        return False
    model, random_results = loaded(buffer), is_random(program)
    for inputs in calls:
        try:
            with torch.no_grad():
                expected = tree_flatten(eager(*copy.deepcopy(inputs)))[0]
        except (RuntimeError, IndexError, ValueError, NotImplementedError):
            return True
        got = executed(model, copy.deepcopy(inputs))
        assert len(got) == len(expected)
        for actual, value in zip(got, expected, strict=True):
            same(actual, torch.as_tensor(value), random_results)
    return True


def same(actual, expected, random_results=False):
    """Compare a result with eager's, to a part of its largest value."""
    expected = expected.detach().resolve_conj().resolve_neg()
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    if random_results or not expected.numel():
        return
    if not (expected.is_floating_point() or expected.is_complex()):
        assert torch.equal(actual, expected), f"{actual} for {expected}"
        return
    if expected.dtype == torch.complex32:
        actual, expected = actual.to(torch.complex64), expected.to(torch.complex64)
    if expected.dtype in NARROW:  # what is computed in a wider type may stay finite
        actual = actual.where(expected.isfinite(), expected)
    finite = expected[expected.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    part = TOLERANCE.get(expected.dtype, 1e-3)
    torch.testing.assert_close(
        actual, expected, rtol=part, atol=part * max(largest, 1e-3), equal_nan=True
    )


def is_random(program):
    """Whether an operator draws numbers, or gives memory that is not set."""
    return any(
        isinstance(node.target, OpOverload)
        and (torch.Tag.nondeterministic_seeded in node.target.tags or "empty" in node.name)
        for module in program.graph_module.modules()
        if isinstance(module, torch.fx.GraphModule)
        for node in module.graph.nodes
    )
