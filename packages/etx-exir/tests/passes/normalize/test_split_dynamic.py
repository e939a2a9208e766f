# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.passes.normalize.split_dynamic import SplitDynamic
from programs import Calls, assert_like_eager, core, counts, edge

BATCH = torch.export.Dim("batch", min=1, max=16)


def parts(x):
    return (*x.split(2, -1), *x.chunk(2, -1), *x[..., None].unbind(1))


def test_tensors_of_symbolic_shape_are_split_by_sizes():
    inputs = torch.randn(3, 5)
    program = edge(Calls(parts), (inputs,), (({0: BATCH},),))
    assert not {"aten.split_copy.Tensor", "aten.unbind_copy.int"} & set(counts(program))
    assert_like_eager(program, Calls(parts), (inputs,), (torch.randn(7, 5),))


def test_static_tensors_are_split_as_they_were():
    assert not SplitDynamic().run(core(Calls(parts), (torch.randn(3, 5),)))
