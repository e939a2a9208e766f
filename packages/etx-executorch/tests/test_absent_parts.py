# SPDX-License-Identifier: BSD-3-Clause
"""What was not asked for when a program was loaded is said to be absent."""

import pytest
import torch
from etx_executorch.exir import to_edge
from etx_executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer
from etx_executorch.runtime import Runtime


def test_a_dump_of_what_was_not_recorded():
    exported = torch.export.export(torch.nn.ReLU().eval(), (torch.ones(2),))
    data = to_edge(exported).to_executorch().buffer
    module = _load_for_executorch_from_buffer(data)
    assert not module.has_etdump()
    for program in (Runtime.get().load_program(data), module):
        with pytest.raises(RuntimeError, match="enable_etdump=True"):
            program.write_etdump_result_to_file("a", "b")
        with pytest.raises(AttributeError, match="nothing"):
            _ = program.nothing
