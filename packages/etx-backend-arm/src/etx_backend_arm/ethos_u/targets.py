# SPDX-License-Identifier: BSD-3-Clause
"""The partitioners of `etx compile --backend TARGET`, one entry point each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from etx_exir import CompileSpec
from etx_exir.errors import BackendError

from etx_backend_arm.ethos_u.backend import EthosUPartitioner
from etx_backend_arm.ethos_u.compile_spec import TARGETS, EthosUCompileSpec


def partitioner(target: str, compile_specs: list[CompileSpec]) -> EthosUPartitioner:
    """Return the partitioner for a target, with the other options of EthosUCompileSpec.

    Raises BackendError where these name another target.
    """
    for spec in compile_specs:
        if spec.key == "target" and spec.value != target.encode():
            raise BackendError(
                f"backend {target!r} was given target={spec.value.decode()}; name one of them"
            )
    chosen = CompileSpec("target", target.encode())
    return EthosUPartitioner(EthosUCompileSpec.from_list([*compile_specs, chosen]))


PARTITIONERS: dict[str, Callable[[list[CompileSpec]], EthosUPartitioner]] = {
    target.replace("-", "_"): partial(partitioner, target) for target in TARGETS
}
globals().update(PARTITIONERS)
