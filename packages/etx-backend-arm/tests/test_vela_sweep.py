# SPDX-License-Identifier: BSD-3-Clause
"""What the partitioner takes, Vela compiles: a few of the graphs that vela_sweep.py draws."""

from __future__ import annotations

import pytest
import vela_sweep
from etx_backend_arm.ethos_u.backend import EthosUPartitioner
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from lowered import delegates, lower
from test_forms import lowered

COUNT = 6


@pytest.mark.parametrize("family", vela_sweep.FAMILIES)
def test_vela_compiles_what_is_taken(family: str) -> None:
    counted, named = vela_sweep.sweep(family, COUNT)
    assert counted["both"] > 0
    assert not {"only etx", "wrong"} & set(counted), named


def test_an_ethos_u85_takes_the_whole_profile() -> None:
    model, inputs, _ = lowered("bilinear_corners", "INT")
    for target, count in (("ethos-u55-128", 0), ("ethos-u85-256", 1)):
        partitioner = EthosUPartitioner(EthosUCompileSpec(target))
        assert len(delegates(lower(model, *inputs, partitioner=partitioner))) == count
