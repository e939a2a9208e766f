# SPDX-License-Identifier: BSD-3-Clause
import torch
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from programs import Calls, apply, assert_like_eager, core, counts, edge


def test_dead_code_takes_its_constants_along():
    module = Calls(lambda self, x: (x + 1, x * self.w)[0], w=torch.ones(3))
    program = edge(module, (torch.randn(3),))
    assert not program.state_dict
    assert len(program.graph_signature.input_specs) == 1


def test_what_is_read_by_what_is_dead_is_dead():
    program = core(Calls(lambda x: (x.exp(), x.sin().cos().tanh())), (torch.randn(3),))
    output = program.graph.output_node()
    output.args = ((output.args[0][0], output.args[0][0]),)
    apply(RemoveDeadCode(), program)
    assert set(counts(program)) == {"aten.exp.default"}


def test_a_write_to_state_is_no_dead_code():
    def step(self, x):
        self.n.add_(x)
        return x * 2

    module = Calls(step, n=torch.zeros(3))
    program = core(module, (torch.ones(3),))
    assert not RemoveDeadCode().run(program)
    assert_like_eager(program, module, (torch.ones(3),), (torch.ones(3),))


def test_inputs_stay_though_nothing_reads_them():
    program = core(Calls(lambda x, y: x + 1), (torch.ones(3), torch.ones(2)))
    assert not RemoveDeadCode().run(program)
    assert len(program.graph_signature.user_inputs) == 2
