# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.passes.simplify.fold_constants import FoldConstants
from programs import Calls, apply, assert_like_eager, core, counts


def test_what_depends_on_constants_alone_is_computed():
    module = Calls(lambda self, x: x + (self.w.t() * 2).exp(), w=torch.randn(3, 2))
    program = core(module, (torch.randn(2, 3),))
    apply(FoldConstants(), program)
    assert counts(program) == {"aten.add.Tensor": 1}
    assert_like_eager(program, module, (torch.randn(2, 3),))


def test_initial_states_are_computed():
    module = torch.nn.LSTM(4, 5, batch_first=True)
    program = core(module, (torch.randn(1, 3, 4),))
    apply(FoldConstants(), program)
    assert "aten.full.default" not in counts(program)
    assert_like_eager(program, module, (torch.randn(1, 3, 4),))


def test_a_large_expansion_is_not_stored():
    module = Calls(lambda self, x: x.matmul(self.w.expand(300, 300)), w=torch.randn(300, 1))
    program = core(module, (torch.randn(2, 300),))
    assert not FoldConstants().run(program)


def test_what_nothing_reads_is_no_reason_to_store():
    module = Calls(lambda self, x: x + self.w.expand(30, 30), w=torch.randn(30, 1))
    program = core(module, (torch.randn(30, 30),))
    (expansion,) = program.graph.find_nodes(
        op="call_function", target=torch.ops.aten.expand_copy.default
    )
    weight = expansion.args[0]
    with program.graph.inserting_before(expansion):
        for _ in range(100):
            program.graph.call_function(torch.ops.aten.neg.default, (weight,)).meta = weight.meta
    assert not FoldConstants().run(program)


def test_arguments_of_a_large_expansion_are_folded():
    module = Calls(lambda self, x: x.matmul(self.w.exp().expand(300, 300)), w=torch.randn(300, 1))
    program = core(module, (torch.randn(2, 300),))
    apply(FoldConstants(), program)
    assert "aten.exp.default" not in counts(program)
    assert "aten.expand_copy.default" in counts(program)


def test_state_is_no_constant():
    def step(self, x):
        self.n.add_(1)
        return x + self.n * 2

    module = Calls(step, n=torch.zeros(()))
    program = core(module, (torch.randn(2),))
    assert not FoldConstants().run(program)
    assert_like_eager(program, module, (torch.ones(2),), (torch.ones(2),))


def test_random_numbers_are_drawn_at_run_time():
    program = core(Calls(lambda x: x + torch.rand(3)), (torch.randn(3),))
    assert not FoldConstants().run(program)


def test_a_constant_that_others_are_computed_from():
    def function(self, x):
        first = self.w.exp()
        return x + first, x * (first + 1), x - (first + 1).sin()

    module = Calls(function, w=torch.randn(3))
    program = core(module, (torch.randn(3),))
    apply(FoldConstants(), program)
    assert sum(counts(program).values()) == 3
    assert_like_eager(program, module, (torch.randn(3),))


def test_equal_programs_give_equal_names():
    module = torch.nn.GRU(4, 5, batch_first=True).eval()
    graphs = []
    for _ in range(2):
        program = core(module, (torch.randn(1, 3, 4),))
        FoldConstants().run(program)
        graphs.append(str(program.graph))
    assert graphs[0] == graphs[1]
