# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from etx_exir.passes.normalize.normalize_strides import NormalizeStrides
from etx_exir.passes.simplify.move_permutes import MovePermutes
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode
from programs import Calls, apply, assert_bits, assert_like_eager, core, counts, edge, refusals
from torch.nn import functional as F

PERMUTE = "aten.permute_copy.default"


def moved(module, *inputs):
    program = core(module, inputs)
    NormalizeStrides().run(program)
    apply(MovePermutes(), program)
    RemoveDeadCode().run(program)
    assert_bits(program, module, inputs)
    return counts(program)


def image():
    return torch.randn(2, 3, 4, 5)


def test_there_and_back():
    module = Calls(lambda x: (x.permute(0, 2, 3, 1).relu() * 2).permute(0, 3, 1, 2))
    assert moved(module, image()) == {"aten.relu.default": 1, "aten.mul.Tensor": 1}


def test_transposes_of_both_operands():
    module = Calls(lambda x, y: (x.mT + y.mT.exp()).sigmoid().mT)
    found = moved(module, image(), image())
    assert not any("permute" in name or "transpose" in name for name in found)


def test_two_that_do_not_cancel_become_one():
    module = Calls(lambda x: x.permute(0, 2, 3, 1).tanh().permute(2, 3, 0, 1))
    assert moved(module, image())[PERMUTE] == 1


def test_a_constant_is_permuted_ahead_of_time():
    module = Calls(
        lambda self, x: (x.permute(0, 2, 3, 1) * self.w + self.v).permute(0, 3, 1, 2),
        w=torch.randn(3),
        v=torch.randn(4, 1, 3),
    )
    assert moved(module, image()) == {"aten.mul.Tensor": 1, "aten.add.Tensor": 1}


def test_an_operand_that_is_not_transposed_takes_the_place_of_one_that_is():
    module = Calls(lambda x, y: (x.mT + y).mT)
    found = moved(module, torch.randn(3, 4), torch.randn(4, 3))
    assert found == {PERMUTE: 1, "aten.add.Tensor": 1}


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x + y).mT,
        lambda x, y: (lambda z: (z, z.mT))((x.mT + y.mT).relu()),
        lambda x, y: (lambda z: (z * 2, (z + y).mT))(x.mT),
        lambda x, y: (x.mT + y[0, 0]).mT,
    ],
    ids=["nothing to cancel", "read as it is", "another reader", "fewer dimensions"],
)
def test_what_gains_nothing_stays(function):
    program = core(Calls(function), (torch.randn(2, 3, 3), torch.randn(2, 3, 3)))
    NormalizeStrides().run(program)
    assert not MovePermutes().run(program)


def test_what_nearly_gains_something_says_what_lacks():
    program = core(Calls(lambda x, y: (x.mT + y[0, 0]).mT), (torch.randn(2, 3, 3),) * 2)
    NormalizeStrides().run(program)
    assert refusals(MovePermutes(), program) == {
        "an operand has fewer dimensions, another layout, or other readers"
    }
    shared = Calls(lambda x, y: (lambda z: (z + y).mT * z)(x.mT))
    program = core(shared, (torch.randn(2, 3, 3),) * 2)
    NormalizeStrides().run(program)
    assert refusals(MovePermutes(), program) == {"no fewer permutations would be left"}


def test_a_block_with_channels_last():
    def block(self, x):
        y = F.gelu(F.linear(x.permute(0, 2, 3, 1), self.w))
        return x + (F.linear(y, self.v) * self.scale).permute(0, 3, 1, 2)

    module = Calls(block, w=torch.randn(6, 3), v=torch.randn(3, 6), scale=torch.randn(3))
    program = edge(module, (image(),))
    assert counts(program)[PERMUTE] == 2
    assert_like_eager(program, module, (image(),), tolerance=1e-4)


def test_dynamic_shapes():
    module = Calls(lambda x: (x.permute(0, 2, 1) + x.shape[0]).permute(0, 2, 1))
    batch = torch.export.Dim("batch", max=9)
    program = edge(module, (torch.randn(4, 2, 3),), (({0: batch},),))
    assert not any("permute" in name for name in counts(program))
    assert_like_eager(program, module, (torch.randn(4, 2, 3),), (torch.randn(7, 2, 3),))


def pointwise():
    """All Core ATen operators that are tagged so and take tensors and numbers only."""
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        packet = getattr(torch.ops.aten, base, None) if namespace == "aten" else None
        op = getattr(packet, overload or "default", None)
        if op is None or not {torch.Tag.core, torch.Tag.pointwise} <= set(op.tags):
            continue
        if op._schema.is_mutable:
            continue
        needed = 2 if base == "clamp" else None
        given = [a for a in op._schema.arguments if needed or not a.has_default_value()][:needed]
        kinds = [str(a.real_type).removeprefix("Optional[").removesuffix("]") for a in given]
        if set(kinds) <= {"Tensor", "number"} and "Tensor" in kinds:
            yield pytest.param(op, kinds, id=str(op))


@pytest.mark.parametrize(("op", "kinds"), sorted(pointwise(), key=lambda param: param.id))
def test_every_pointwise_operator_lets_permutes_pass(op, kinds):
    def call(*tensors):
        rest = iter(tensors)
        return op(*(next(rest).mT if kind == "Tensor" else 2 for kind in kinds)).mT

    inputs = [torch.randint(1, 6, (3, 4)) for kind in kinds if kind == "Tensor"]
    if op in (torch.ops.aten.clone.default, torch.ops.aten.where.self):
        inputs[0] = inputs[0] > 3
    if not op.name().startswith("aten::bitwise") or op is torch.ops.aten.bitwise_not.default:
        inputs = [x if x.dtype == torch.bool else x.float() / 7 for x in inputs]
    if op is torch.ops.aten.bitwise_not.default:
        inputs = [x.long() for x in inputs]
    found = moved(Calls(call), *inputs)
    assert sum(found.values()) == len(found) == 1, found
