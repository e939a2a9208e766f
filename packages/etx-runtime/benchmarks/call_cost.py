# SPDX-License-Identifier: BSD-3-Clause
"""Print what a call from Python costs over the C++ execution, for one small input.

The C++ time and each way to call are measured in turns, in one run; the least of the rounds counts.
Run by hand, with the kernels installed: ``python benchmarks/call_cost.py [--rounds 1000]``.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable
from typing import Any

import etx_runtime
import etx_schema as es
import numpy as np

CALLS = 500


def program(size: int) -> bytes:
    """x + x, for a vector of `size`."""
    plan = es.ExecutionPlan(name="forward", non_const_buffer_sizes=[0, 256])
    tensors = [es.Tensor(scalar_type=es.ScalarType.FLOAT, sizes=[size]) for _ in range(2)]
    for offset, tensor in zip((0, 128), tensors, strict=True):
        tensor.dim_order = [0]
        tensor.allocation_info = es.AllocationDetails(memory_id=1, memory_offset_low=offset)
    plan.values = [es.EValue(val=value) for value in (*tensors, es.Int(int_val=1))]
    plan.operators = [es.Operator(name="aten::add", overload="out")]
    call = es.KernelCall(op_index=0, args=[0, 0, 2, 1, 1])
    chain = es.Chain(inputs=[], outputs=[], instructions=[es.Instruction(instr_args=call)])
    plan.chains, plan.delegates = [chain], []
    plan.inputs, plan.outputs = [0], [1]
    return es.serialize_pte(es.PteFile(es.Program(version=0, execution_plan=[plan])))


def main() -> None:
    """Measure in turns and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1000)
    rounds = parser.parse_args().rounds
    model = etx_runtime.load(program(4))
    method = model.method()
    x = np.ones(4, np.float32)
    inputs = [x]
    np.testing.assert_array_equal(model(x), x * 2)
    flat = method.flat_caller()
    borrowing = etx_runtime.load(program(4), borrow=True)
    borrowing(x)
    ways: dict[str, Callable[[], Any]] = {
        "nothing (the loop itself)": lambda: None,
        "model(x)": lambda: model(x),
        "model(x), borrowed": lambda: borrowing(x),
        "method.execute([x])": lambda: method.execute(inputs),
        "method.flat_caller()(x)": lambda: flat(x),
        "np.empty(4, np.float32)": lambda: np.empty(4, np.float32),
    }
    best = dict.fromkeys(ways, float("inf"))
    inside = float("inf")
    for _ in range(rounds):
        times = sorted(method.time_executions(inputs, CALLS))
        inside = min(inside, times[len(times) // 2])
        for name, call in ways.items():
            best[name] = min(best[name], timeit.timeit(call, number=CALLS) / CALLS * 1e9)
    loop = best.pop("nothing (the loop itself)")
    print(f"{inside:8.0f} ns  execution in C++")
    for name, duration in best.items():
        over = duration - loop - inside
        print(f"{duration - loop:8.0f} ns  {name}: {over:.0f} ns over the execution")


if __name__ == "__main__":
    main()
