# SPDX-License-Identifier: BSD-3-Clause
"""What names of ExecuTorch's Cortex-M tests stand for in ETX, where the port has none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest
from torch import Tensor
from torch.fx import Node

MATERIAL = "executorch.backends.arm.test"


def parametrize(
    name: str, cases: Mapping[str, Any], *_: object, **__: object
) -> Callable[..., Any]:
    """Run a test for each case by name, also what ExecuTorch skips or expects to fail."""
    return pytest.mark.parametrize(name, [pytest.param(v, id=k) for k, v in cases.items()])


def stand_in() -> None:
    """Stand in for the material of tests that needs ExecuTorch's TOSA lowering and simulator."""
    common: Any = ModuleType(f"{MATERIAL}.common")
    common.parametrize, common.xfail_type = parametrize, object
    common.get_u55_compile_spec = lambda *args, **kwargs: None
    tester: Any = ModuleType(f"{MATERIAL}.tester.arm_tester")
    tester.Serialize = type("Serialize", (), {})
    sys.modules |= {common.__name__: common, tester.__name__: tester}


def names() -> Mapping[str, Any]:
    """Return values by name."""
    chain = "backends.transforms.duplicate_dynamic_quant_chain.DuplicateDynamicQuantChainPass"
    value = "backends.arm._passes.arm_pass_utils.get_first_fake_tensor"
    return {chain: lambda: lambda module: None, value: _first_value}


def _first_value(node: Node) -> Tensor:
    """Return the example value of a node, the first of several."""
    found = node.meta["val"]
    return found[0] if isinstance(found, (list, tuple)) else found
