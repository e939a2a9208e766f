# SPDX-License-Identifier: BSD-3-Clause
"""A bundled program is made, read again and verified."""

import torch
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import (
    deserialize_from_flatbuffer_to_bundled_program,
    serialize_from_bundled_program_to_flatbuffer,
)
from executorch.exir import to_edge
from executorch.extension.pybindings.portable_lib import (
    _load_bundled_program_from_buffer,
    _load_for_executorch_from_bundled_program,
)

model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Sigmoid()).eval()
x = torch.randn(2, 4)
program = to_edge(torch.export.export(model, (x,))).to_executorch()
cases = [MethodTestCase([x], [model(x)]), MethodTestCase([x], [model(x) + 1])]
bundle = BundledProgram(program, [MethodTestSuite("forward", cases)])
content = serialize_from_bundled_program_to_flatbuffer(bundle)
assert len(deserialize_from_flatbuffer_to_bundled_program(content).method_test_suites) == 1

loaded = _load_bundled_program_from_buffer(content)
(y,) = loaded.verify_result_with_bundled_expected_output("forward", 0, 1e-4, 1e-6)
torch.testing.assert_close(y, model(x))
try:
    loaded.verify_result_with_bundled_expected_output("forward", 1)
except RuntimeError:
    pass
else:
    raise AssertionError("a wrong output was taken for the expected one")
torch.testing.assert_close(
    _load_for_executorch_from_bundled_program(loaded).forward([x])[0], model(x)
)
