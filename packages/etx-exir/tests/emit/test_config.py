# SPDX-License-Identifier: BSD-3-Clause
"""Each of ExecuTorch's options works or is refused with a reason."""

from __future__ import annotations

from enum import Enum

import etx_runtime
import pytest
import torch
from etx_exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from etx_exir.errors import ConfigError
from etx_schema import DataLocation, read_pte
from on_device import assert_same, export
from running import operators, reread
from torch import nn
from toy import ToyPartitioner

X = torch.randn(2, 6)


class Net(nn.Module):
    def forward(self, x):
        largest, where = torch.topk((x + 1).view(4, 3), 2)
        return largest + 2, where, x.t()


def finished(**options):
    return to_edge(export(Net(), (X,))).to_executorch(ExecutorchBackendConfig(**options))


def run(manager):
    assert_same(etx_runtime.load(manager.buffer)(X.numpy()), Net()(X))


class Mode(Enum):
    UPPER_BOUND = 0
    SYMBOLIC = 1


HONOURED = [
    {"run_reinplace_pass": True},
    {"enable_non_cpu_memory_planning": False},
    {"dynamic_memory_planning_mode": Mode.UPPER_BOUND},
    {"segment_alignment": 4096, "delegate_alignment": 1024},
    {"constant_tensor_alignment": 64},
    {"emit_stacktrace": True},
]


@pytest.mark.parametrize("options", HONOURED, ids=lambda options: ", ".join(options))
def test_what_is_honoured(options):
    run(finished(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segment_alignment": 3}, "expected a power of two"),
        ({"delegate_alignment": 256}, "aligned to 128; raise segment_alignment"),
        ({"delegate_alignment": 32, "extract_delegate_segments": False}, "aligned to 16"),
        ({"do_quant_fusion_and_const_prop": True}, "constants are always folded"),
        ({"to_out_var_pass": object()}, "register one with torch.library"),
        ({"sym_shape_eval_pass": object()}, "upper bounds"),
        ({"propagate_device_config": {"forward": 1}}, "all memory is the host's"),
        ({"reinplace_extra_ops": frozenset({1})}, "safe in place"),
        ({"dynamic_memory_planning_mode": Mode.SYMBOLIC}, "expected UPPER_BOUND"),
    ],
    ids=lambda item: ", ".join(item) if isinstance(item, dict) else None,
)
def test_what_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        ExecutorchBackendConfig(**options)


def test_skipping_dim_orders_is_refused():
    with pytest.raises(ConfigError, match="leave the option out"):
        EdgeCompileConfig(_skip_dim_order=True)


def test_views_can_stay_copies():
    manager = finished(remove_view_copy=False)
    assert "aten::view_copy.out" in operators(reread(manager.pte_file))
    assert "aten::view_copy.out" not in operators(reread(finished().pte_file))
    run(manager)


def test_delegates_in_the_tables():
    edge = to_edge(export(lambda x: (x + x) * x, (X,))).to_backend(ToyPartitioner())
    config = {"target": None, "extract_delegate_segments": False}
    manager = edge.to_executorch(ExecutorchBackendConfig(**config))
    apart = read_pte(edge.to_executorch(ExecutorchBackendConfig(target=None)).buffer)
    content = read_pte(manager.buffer)
    (delegate,) = content.program.execution_plan[0].delegates
    assert delegate.processed.location == DataLocation.INLINE
    inline = [bytes(item.data) for item in content.program.backend_delegate_data]
    assert inline == [bytes(blob) for blob in apart.delegates]
    assert not content.delegates


def test_numbers_of_results():
    manager = finished()
    results = manager.instruction_id_to_num_outs_map["forward"]
    names = operators(manager.pte_file)
    assert len(results) == len(names)
    by_name = {name: results[i] for i, name in enumerate(names)}
    assert by_name["aten::topk.values"] == 2
    assert by_name["aten::add.Scalar_out"] == 1
