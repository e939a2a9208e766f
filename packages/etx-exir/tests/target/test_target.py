# SPDX-License-Identifier: BSD-3-Clause
"""The target check names everything that is missing, where, and what to do."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from etx_exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from etx_exir.emit import emit
from etx_exir.ir.out_variants import out_variant
from etx_exir.ir.targets import etx, executorch
from etx_exir.lower.decompose import whole_operators
from etx_exir.lower.decompositions import OURS, SIMPLER
from etx_exir.target.check import TORCH, UnsupportedError, check_target, load_target
from etx_schema import Target, TargetError
from running import edge
from torch import nn
from torch.export import default_decompositions
from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

aten = torch.ops.aten


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh())

    def forward(self, x):
        return torch.sin(self.body(x)).double()


def target(*missing, **more):
    document = json.loads(etx().read_text())
    operators = {k: v for k, v in document["operators"].items() if k not in missing}
    return Target.parse({**document, "name": "small", "operators": operators, **more})


def test_an_operator_of_torch_is_not_the_users_own():
    query = "import torch; print(*(s.name for s in torch._C._jit_get_all_schemas()))"
    command = [sys.executable, "-I", "-c", query]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert {name.partition("::")[0] for name in names} <= TORCH

    class Loss(nn.Module):
        def forward(self, x, weight, expected):
            return F.linear_cross_entropy(x, weight, expected, options=options)

    options = LinearCrossEntropyOptions(batch_chunk_size=2, allow_retain_graph=True)
    inputs = torch.randn(8, 8), torch.randn(8, 8), torch.arange(8)
    with pytest.raises(UnsupportedError, match="no operator torch_nn::"):
        emit({"forward": edge(Loss(), inputs)}, target="etx")


@pytest.mark.parametrize("name", ["etx", "executorch"])
def test_each_has_what_a_network_needs(name):
    emit({"forward": edge(Net(), (torch.randn(1, 4),))}, target=name)


def test_all_that_is_missing_is_reported_at_once():
    program = edge(Net(), (torch.randn(1, 4),))
    with pytest.raises(UnsupportedError) as caught:
        emit({"forward": program}, target=target("aten::tanh.out", "aten::sin.out"))
    text = str(caught.value)
    assert "2 things are missing" in text
    assert "no operator aten::tanh.out, 2 times" in text
    assert "module body.1" in text
    assert "test_target.py:" in text
    assert "what to do:" in text
    assert {p.module for p in caught.value.problems if "tanh" in p.message} == {"body.1", "body.3"}


def test_dtypes_and_ranks_are_checked():
    program = edge(Net(), (torch.randn(1, 4),))
    small = target(limits={"max_rank": 1})
    with pytest.raises(UnsupportedError, match="rank 2"):
        emit({"forward": program}, target=small)
    small = target()
    operators = {**small.operators, "aten::tanh.out": {"dtypes": ["int64"]}}
    with pytest.raises(UnsupportedError, match=r"aten::tanh\.out for int64, not for float32"):
        check_target(emit({"forward": program}), Target("ints", operators))


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_advice_names_what_the_compiler_can_do():
    class Kept(nn.Module):
        def forward(self, x):
            return torch.nn.functional.mish(torch.nn.functional.gelu(x))

    program = torch.export.export(Kept(), (torch.randn(4),))
    kept = EdgeCompileConfig(preserve_ops=[aten.softplus.default, aten.mish.default])
    with pytest.raises(UnsupportedError) as caught:
        to_edge(program, compile_config=kept).to_executorch(
            ExecutorchBackendConfig(target=target("aten::gelu.out"))
        )
    hints = {problem.subject: problem.hint for problem in caught.value.problems}
    assert hints["aten::mish.out"].startswith(
        "leave torch.ops.aten.mish.default out of preserve_ops, then it is decomposed"
    )
    call = "program.run_decompositions(torch._decomp.get_decompositions([torch.ops.aten.gelu."
    assert f"decompose it before lowering: {call}default]))" in hints["aten::gelu.out"]
    program = program.run_decompositions(
        torch._decomp.get_decompositions([torch.ops.aten.gelu.default])
    )
    to_edge(program).to_executorch(ExecutorchBackendConfig(target=target("aten::gelu.out")))


def test_executorch_says_who_has_what_it_lacks():
    peer = load_target("executorch")
    assert peer.elsewhere
    assert peer.elsewhere.keys() == load_target("etx").operators.keys() - peer.operators.keys()
    assert set(peer.elsewhere.values()) == {"etx"}


def test_targets_join(tmp_path):
    path = tmp_path / "npu.json"
    document = {"name": "npu", "extends": ["etx"], "backends": ["Npu"]}
    path.write_text(json.dumps(document))
    assert load_target(str(path)).operators == load_target("etx").operators
    assert load_target(f"etx+{path}").backends == ("Npu",)


class Sorted(nn.Module):
    def forward(self, x):
        return torch.sort(x, stable=True)[0] + torch.sort(x)[0]


def test_an_operator_stays_whole_where_the_target_has_its_kernel():
    program = torch.export.export(Sorted(), (torch.randn(4),))
    operators = names_of(to_edge(program).to_executorch())
    assert {"aten::sort.values_stable", "aten::topk.values"} <= operators
    with pytest.raises(UnsupportedError, match="has no operator aten::sort"):
        to_edge(program).to_executorch(ExecutorchBackendConfig(target="executorch"))


def names_of(manager):
    (plan,) = manager.executorch_program.execution_plan
    return {f"{op.name}.{op.overload}" for op in plan.operators}


@pytest.mark.parametrize(
    ("missing", "call", "instead"),
    [
        ("aten::roll.out", lambda x: x.roll(1, 0), "aten::index_select.out"),
        ("aten::linear.out", lambda x: nn.functional.linear(x, x), "aten::mm.out"),
        ("aten::glu.out", nn.functional.glu, "aten::sigmoid.out"),
    ],
)
def test_what_a_target_lacks_is_decomposed_for_it(missing, call, instead):
    class Call(nn.Module):
        def forward(self, x):
            return call(x)

    manager = to_edge(torch.export.export(Call(), (torch.randn(4, 4),)))
    assert missing in names_of(manager.to_executorch())
    small = manager.to_executorch(ExecutorchBackendConfig(target=target(missing)))
    assert instead in names_of(small)
    assert missing not in names_of(small)
    assert missing in names_of(manager.to_executorch())


@pytest.mark.parametrize(
    ("call", "inputs"),
    [
        (lambda x, i: i + 2.5, (torch.ones(2), torch.arange(3))),
        (lambda x, i: (i > 1) + 1, (torch.ones(2), torch.arange(3))),
        (lambda x, i: x.gather(0, i), (torch.ones(2), torch.zeros(3, dtype=torch.int32))),
    ],
)
def test_what_executorch_does_not_convert_is_converted_for_it(call, inputs):
    class Call(nn.Module):
        def forward(self, x, i):
            return call(x, i)

    manager = to_edge(torch.export.export(Call(), inputs))
    cast = "dim_order_ops::_to_dim_order_copy.out"
    assert cast not in names_of(manager.to_executorch())
    theirs = manager.to_executorch(ExecutorchBackendConfig(target="executorch"))
    assert cast in names_of(theirs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: nn.functional.conv3d(x, x), r"convolution\.out with input of rank <= 4, not of"),
        (lambda x: x.sum().cumsum(0), r"cumsum\.out with self of rank >= 1, not of rank 0"),
        (lambda x: x.double().log_softmax(0), r"_log_softmax\.out with self of .*not of float64"),
        (lambda x: torch.fft.fft(x).real, "value == 1, not of value 0"),
    ],
)
def test_what_executorch_does_not_take_is_refused_with_the_reason(call, message):
    class Call(nn.Module):
        def forward(self, x):
            return call(x)

    manager = to_edge(torch.export.export(Call(), (torch.randn(1, 1, 2, 2, 2),)))
    with pytest.raises(UnsupportedError, match=message) as caught:
        manager.to_executorch(ExecutorchBackendConfig(target="executorch"))
    assert "test_target.py:" in str(caught.value)


def test_every_simpler_operator_has_a_decomposition():
    """The exceptions to "what has a kernel stays whole" are not stale."""
    table = default_decompositions()
    known = {op for op in SIMPLER if op in OURS or op in table or op._can_decompose()}
    assert known == SIMPLER
    assert not whole_operators() & SIMPLER


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_operators_without_an_out_variant_are_named_together():
    library = torch.library.Library("etx_test_target", "FRAGMENT")
    for name in ("one", "two"):
        library.define(f"{name}(Tensor x) -> Tensor[]")
        library.impl(name, lambda x: [x + 1], "CompositeExplicitAutograd")
    ops = torch.ops.etx_test_target

    class Custom(nn.Module):
        def forward(self, x):
            return ops.two(ops.one(x)[0] * ops.one(x)[0])

    program = torch.export.export(Custom(), (torch.ones(2),)).run_decompositions()
    with pytest.raises(UnsupportedError) as caught:
        emit({"forward": program})
    assert [p.message.split()[0] for p in caught.value.problems] == [
        "etx_test_target.one.default",
        "etx_test_target.one.default",
        "etx_test_target.two.default",
    ]
    assert "etx_test_target::one.out" in str(caught.value)


def test_unknown_targets():
    with pytest.raises(TargetError, match="unknown target 'toaster'"):
        load_target("toaster")
    assert load_target("etx").name == "etx"
    assert load_target(executorch()).name == "executorch"


@pytest.mark.parametrize(
    ("op", "key"),
    [
        (aten.add.Tensor, "aten::add.out"),
        (aten.add.Scalar, "aten::add.Scalar_out"),
        (aten.view_copy.default, "aten::view_copy.out"),
        (aten.max.dim, "aten::max.dim_max"),
        (aten.max.default, "aten::max.unary_out"),
        (aten.topk.default, "aten::topk.values"),
        (aten.split_copy.Tensor, "aten::split_copy.Tensor_out"),
        (aten.any.default, "aten::any.all_out"),
        (aten.mean.dim, "aten::mean.out"),
        (aten.mean.default, "aten::mean.dtype_out"),
        (aten.sum.dim_IntList, "aten::sum.IntList_out"),
        (aten.full.default, "aten::full.out"),
        (aten.full_like.default, "aten::full_like.out"),
        (aten.arange.start_step, "aten::arange.start_out"),
        (aten.arange.start, "aten::arange.start_out"),
        (aten.arange.default, "aten::arange.out"),
        (aten.index.Tensor, "aten::index.Tensor_out"),
        (aten.upsample_nearest2d.vec, "aten::upsample_nearest2d.vec_out"),
        (aten.pow.Tensor_Scalar, "aten::pow.Tensor_Scalar_out"),
        (aten.div.Tensor_mode, "aten::div.out_mode"),
        (aten.prod.dim_int, "aten::prod.int_out"),
        (aten.convolution.default, "aten::convolution.out"),
        (aten._to_copy.default, "aten::_to_copy.out"),
    ],
)
def test_out_variants(op, key):
    variant = out_variant(op)
    assert variant is not None
    assert variant.key == key


def test_most_of_the_operators_are_some_out_variant():
    reached = set()
    names = json.loads(etx().read_text())["operators"]
    for name in {n.split("::")[1].split(".")[0] for n in names if n.startswith("aten::")}:
        packet = getattr(aten, name)
        for overload in packet.overloads():
            op = getattr(packet, overload)
            if not any(a.is_out for a in op._schema.arguments):
                variant = out_variant(op)
                reached.add(variant.key if variant else None)
    out = {n for n in names if n.startswith("aten::") and n.rpartition(".")[2] != "int"}
    plain = {n for n in out if "." not in n}
    assert sorted(out - plain - reached) == []
