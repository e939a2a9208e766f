# SPDX-License-Identifier: BSD-3-Clause
"""What a part that is there lacks says so as an absent module does."""

import io

import pytest
import torch
from etx_executorch.absent import ABSENT
from etx_executorch.exir import to_edge
from etx_executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer
from etx_executorch.runtime import Runtime


def test_an_etdump_says_what_to_use_instead():
    exported = torch.export.export(torch.nn.ReLU().eval(), (torch.ones(2),))
    data = to_edge(exported).to_executorch().buffer
    program = Runtime.get().load_program(data)
    for ask in (
        lambda: program.write_etdump_result_to_file("a", "b"),
        lambda: Runtime.get().load_program(data, enable_etdump=True),
        lambda: Runtime.get().load_program(io.BytesIO(data), enable_etdump=True),
        lambda: _load_for_executorch_from_buffer(data, enable_etdump=True),
    ):
        with pytest.raises(ImportError) as caught:
            ask()
        assert str(caught.value) == f"etx_executorch.devtools.etdump: {ABSENT['devtools.etdump']}"
    with pytest.raises(AttributeError, match="nothing"):
        _ = program.nothing
