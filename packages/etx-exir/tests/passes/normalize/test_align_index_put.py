# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.ir.equal_values import note_of
from etx_exir.passes.normalize.align_index_put import AlignIndexPut
from programs import Calls, apply, assert_like_eager, core, edge

INDEX_PUT = torch.ops.aten.index_put.default


def write(self, x, position):
    self.cache[:, position] = x
    return self.cache * 1.5


def test_values_have_the_rank_of_what_they_are_written_to():
    module = Calls(write, cache=torch.zeros(1, 8, 3))
    inputs = (torch.randn(2, 3), torch.tensor([1, 4]))
    program = edge(module, inputs)
    (call,) = program.graph.find_nodes(op="call_function", target=INDEX_PUT)
    assert call.args[2].meta["val"].dim() == 3
    assert_like_eager(program, module, inputs, inputs)


def test_a_symbolic_number_of_rows():
    rows = torch.export.Dim("rows", max=4)
    module = Calls(write, cache=torch.zeros(1, 8, 3))
    program = core(module, (torch.randn(2, 3), torch.tensor([1, 4])), (({0: rows}, {0: rows}),))
    apply(AlignIndexPut(), program)
    assert_like_eager(program, module, (torch.randn(3, 3), torch.tensor([0, 2, 7])))


def test_what_is_written_is_noted():
    """A delegate may end at the view: the value that it returns is known by its name."""
    module = Calls(lambda self, x, at: write(self, x.sin(), at), cache=torch.zeros(1, 8, 3))
    rows = torch.export.Dim("rows", max=4)
    program = core(module, (torch.randn(2, 3), torch.tensor([1, 4])), (({0: rows}, {0: rows}),))
    apply(AlignIndexPut(), program)
    (call,) = program.graph.find_nodes(op="call_function", target=INDEX_PUT)
    assert note_of(call.args[2]) == ("sin", 1.0, [-1, 0, 1])


def test_a_mask_stays():
    module = Calls(lambda x, v, m: x.index_put((m,), v))
    inputs = torch.zeros(2, 3), torch.tensor([1.0]), torch.eye(2, 3, dtype=torch.bool)
    assert not AlignIndexPut().run(core(module, inputs))
