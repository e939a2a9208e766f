# SPDX-License-Identifier: BSD-3-Clause
"""A copy of a program for Netron, which refuses a file for one operator that it does not know.

Netron 9.3.3 draws an instruction by the schema of torch's operator of that name, and has none of
namespace ``etx``. In the copy such a call has the name and the arguments of the operator of torch
that says the same to a reader; what that one has no argument for is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from etx_schema import (
    Blob,
    Bool,
    BoolList,
    DelegateCall,
    EValue,
    ExecutionPlan,
    Instruction,
    KernelCall,
    Null,
    Operator,
    ProgramError,
    PteFile,
    String,
    Tensor,
    TensorList,
    program_of,
    read_pte,
)
from etx_schema.files import PathLike, load_bytes
from etx_schema.inspect.reads_writes import split_results
from etx_schema.operator_names import operator_name

__all__ = ["CALLS", "netron_copy"]

CALLS = {
    "etx::attention.out": "aten::scaled_dot_product_attention 0 1 2 3 - 6 5 - > 0",
    "etx::bmm_nt.out": "aten::bmm 0 1 > 0",
    "etx::dynamic_conv.out": "aten::conv2d 0 3 6 8 9 10 12 > 0",
    "etx::dynamic_linear.out": "aten::linear 0 1 4 > 0",
    "etx::dynamic_linear_int4.out": "aten::linear 0 1 4 > 0",
    "etx::gru.out": "aten::gru.input 0 1 2+3+4+5 - - - - - 6 > 0 -",
    "etx::lookup.out": "aten::take 1 0 > 0",
    "etx::lstm.out": "aten::lstm.input 0 1+2 3+4+5+6+7 - - - - - 8 > 0 - 1",
    "etx::max_pool2d.out": "aten::max_pool2d 0 1 2 3 4 5 > 0",
    "etx::narrow_conv.out": "aten::convolution 0 1 2 3 4 5 - - 6 > 0",
    "etx::narrow_linear.out": "aten::linear 0 1 2 > 0",
    "etx::quantized_add.out": "quantized::add.out 0 1 > 0",
    "etx::quantized_avg_pool.out": "aten::avg_pool2d 0 1 2 3 - 4 - > 0",
    "etx::quantized_conv.out": "aten::conv2d 0 1 3 6 7 8 10 > 0",
    "etx::quantized_depthwise_conv.out": "aten::conv2d 0 1 3 6 7 8 - > 0",
    "etx::quantized_interpolate.out": "aten::upsample_bilinear2d 0 - - - - > 0",
    "etx::quantized_linear.out": "aten::linear 0 1 3 > 0",
    "etx::quantized_max_pool.out": "aten::max_pool2d 0 1 2 3 4 - > 0",
    "etx::quantized_mean.out": "aten::mean.dim 0 1 2 - > 0",
    "etx::quantized_mul.out": "quantized::mul.out 0 1 > 0",
    "etx::rnn.out": "aten::rnn_tanh.input 0 1 2+3+4+5 - - - - - 6 > 0 -",
    "etx::weight_only_gru.out": "aten::gru.input 0 1 2+4+6+7 - - - - - 8 > 0 -",
    "etx::weight_only_linear.out": "aten::linear 0 1 3 > 0",
    "etx::weight_only_linear_int4.out": "aten::linear 0 1 3 > 0",
    "etx::weight_only_lstm.out": "aten::lstm.input 0 1+2 3+5+7+8+9 - - - - - 11 > 0 - 1",
    "etx::weight_only_rnn.out": "aten::rnn_tanh.input 0 1 2+4+6+7 - - - - - 8 > 0 -",
    "aten::_pdist_forward.out": "aten::pdist",
    "aten::sym_numel": "aten::numel",
    "aten::t_copy.out": "aten::t",
    "aten::unbind_copy.int_out": "aten::unbind.int",
    "et_copy::_d2h_copy.out": "aten::alias",
    "et_copy::_h2d_copy.out": "aten::alias",
    "executorch_prim::floordiv.int": "executorch_prim::floordiv.Scalar",
    "executorch_prim::mod.int": "executorch_prim::mod.Scalar",
    "executorch_prim::sym_int.Scalar": "executorch_prim::trunc.Scalar",
    "executorch_prim::sym_ite.Scalar": "prim::IfThenElse",
    "executorch_prim::sym_not.Scalar": "aten::__not__",
    "quantized_decomposed::add.out": "quantized_decomposed::add",
    "quantized_decomposed::choose_qparams.Tensor_out": (
        "quantized_decomposed::choose_qparams.tensor"
    ),
    "quantized_decomposed::dequantize_per_token.out": "quantized_decomposed::dequantize_per_token",
    "quantized_decomposed::embedding_2bit.dtype_out": "quantized_decomposed::embedding_4bit.dtype",
    "quantized_decomposed::embedding_2bit.out": "quantized_decomposed::embedding_4bit",
    "quantized_decomposed::mixed_linear.out": "quantized_decomposed::mixed_linear",
    "quantized_decomposed::mixed_mm.out": "quantized_decomposed::mixed_mm",
    "quantized_decomposed::quantize_per_channel.out": "quantized_decomposed::quantize_per_channel",
    "quantized_decomposed::quantize_per_tensor.Tensor_out": (
        "quantized_decomposed::quantize_per_tensor.tensor"
    ),
    "quantized_decomposed::quantize_per_token.out": "quantized_decomposed::quantize_per_token",
    "torchvision::nms.out": "torchvision::nms",
    "torchvision::roi_align.out": "torchvision::roi_align",
}
"""By an operator's name: torch's, and which argument each of its arguments is, and each result.

`-` is None among arguments and an unused tensor among results, `2+3` a list of tensors. Where only
a name stands, the arguments are the same.
"""
UNKNOWN = frozenset({"aten::_conj_physical.out", "aten::_fft_c2c.out", "aten::_fft_c2r.out"})
UNKNOWN |= {"aten::hypot.out", "aten::max_pool2d_with_indices_backward.grad_input"}
UNKNOWN |= {"etx::polynomial.out"}
"""Operators that Netron knows under no name."""
NAMESPACES = frozenset({"aten", "prim", "quantized", "torchvision", "llama", "dim_order_ops"})
NAMESPACES |= {"executorch_prim", "quantized_decomposed", "cortex_m"}
BACKENDS = frozenset({"XnnpackBackend", "CoreMLBackend", "VulkanBackend", "QnnBackend"})
BACKENDS |= {"EthosUBackend", "OpenvinoBackend", "RockchipBackend"}
"""Whose calls Netron draws; others make it refuse the file."""


def netron_copy(source: PathLike | Blob) -> tuple[PteFile, list[str]]:
    """Return a copy of the program to be drawn, not run, and what Netron refuses in it still.

    Those are operators and backends whose names it does not know: by name, each once.
    """
    pte = read_pte(program_of(load_bytes(source)))
    refused: set[str] = set()
    plans = [_plan(plan, refused) for plan in pte.program.execution_plan]
    return replace(pte, program=replace(pte.program, execution_plan=plans)), sorted(refused)


def _plan(plan: ExecutionPlan, refused: set[str]) -> ExecutionPlan:
    values = [EValue(_drawable(value.val)) for value in plan.values]
    plan = replace(plan, values=values, operators=list(plan.operators))
    chains = []
    for chain in plan.chains:
        drawn = []
        for index, instruction in enumerate(chain.instructions):
            try:
                drawn.append(Instruction(_drawn(plan, instruction.instr_args, refused)))
            except IndexError as error:
                raise ProgramError(
                    f"method {plan.name!r}, instruction {index}: an index is out of range, or it "
                    "has not the arguments of its operator; `etx check` lists what is wrong"
                ) from error
        chains.append(replace(chain, instructions=drawn))
    return replace(plan, chains=chains)


def _drawn(plan: ExecutionPlan, call: Any, refused: set[str]) -> Any:
    if isinstance(call, DelegateCall):
        backend = plan.delegates[call.delegate_index].id or ""
        refused |= {backend} - BACKENDS
    return _call(plan, call, refused) if isinstance(call, KernelCall) else call


def _drawable(value: object) -> Any:
    """Return a value as Netron reads it, which knows no lists of bools and no names of tensors."""
    if isinstance(value, BoolList):
        return String(str([bool(item) for item in value.items]))
    if isinstance(value, Tensor):
        return replace(value, extra_tensor_info=None)
    return value


def _call(plan: ExecutionPlan, call: KernelCall, refused: set[str]) -> KernelCall:
    own = operator_name(plan, call.op_index)
    if own not in CALLS:
        if own.partition("::")[0] not in NAMESPACES or own in UNKNOWN:
            refused.add(own)
        return call
    name, *words = CALLS[own].split()
    results, given = split_results(plan, list(call.args))
    if name == "aten::rnn_tanh.input" and _is_true(plan, given[-1]):
        name = "aten::rnn_relu.input"
    args = list(call.args)
    if words:
        split = words.index(">")
        args = [_argument(plan, given, word) for word in words[:split]]
        args += [_result(plan, results, word) for word in words[split + 1 :]]
    return KernelCall(_operator(plan, name), args)


def _argument(plan: ExecutionPlan, given: Sequence[int], word: str) -> int:
    if word == "-":
        return _append(plan, Null())
    places = [given[int(each)] for each in word.split("+")]
    if len(places) == 1:
        return places[0]
    tensors = [place for place in places if isinstance(plan.values[place].val, Tensor)]
    return _append(plan, TensorList(tensors))


def _result(plan: ExecutionPlan, results: Sequence[int], word: str) -> int:
    if word != "-":
        return results[int(word)]
    return _append(plan, plan.values[results[0]].val)


def _append(plan: ExecutionPlan, value: Any) -> int:
    plan.values.append(EValue(value))
    return len(plan.values) - 1


def _operator(plan: ExecutionPlan, key: str) -> int:
    name, _, overload = key.partition(".")
    chosen = Operator(name, overload)
    if chosen not in plan.operators:
        plan.operators.append(chosen)
    return plan.operators.index(chosen)


def _is_true(plan: ExecutionPlan, place: int) -> bool:
    value = plan.values[place].val
    return isinstance(value, Bool) and bool(value.bool_val)
