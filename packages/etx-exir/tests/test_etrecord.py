# SPDX-License-Identifier: BSD-3-Clause
"""ETRecords: what is kept, written and read again."""

from __future__ import annotations

import pytest
import torch
from etx_exir import to_edge, to_edge_transform_and_lower
from etx_exir.errors import ConfigError
from etx_exir.etrecord import generate_etrecord, parse_etrecord
from torch import nn
from toy import ToyPartitioner


class Branches(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos(), (x,))


X = (torch.randn(3),)


def test_both_programs_compute_what_the_model_does(tmp_path):
    edge = to_edge(torch.export.export(Branches(), X), generate_etrecord=True)
    finished = edge.to_executorch()
    record = finished.get_etrecord()
    record.update_representative_inputs([X])
    record.update_reference_outputs([Branches()(*X)])
    record.save(tmp_path / "net.etrecord")
    again = parse_etrecord(tmp_path / "net.etrecord")
    for program in (again.exported_program, again.edge_dialect_program):
        torch.testing.assert_close(program.module()(*X), Branches()(*X))
    assert again._debug_handle_map == finished.debug_handle_map
    assert again._delegate_map == finished.delegate_map
    torch.testing.assert_close(again._reference_outputs["forward"][0], Branches()(*X))
    handles = {n.meta.get("debug_handle") for n in again.edge_dialect_program.graph.nodes}
    assert set(finished.debug_handle_map["forward"].values()) & handles


def test_a_delegated_program_is_kept_as_it_was_before(tmp_path):
    program = torch.export.export(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), X)
    edge = to_edge_transform_and_lower(
        program, partitioner=[ToyPartitioner()], generate_etrecord=True
    )
    edge.to_executorch().get_etrecord().save(tmp_path / "net.etrecord")
    kept = parse_etrecord(tmp_path / "net.etrecord").edge_dialect_program
    assert not any("delegate" in str(node.target) for node in kept.graph.nodes)


def test_several_methods(tmp_path):
    programs = {n: torch.export.export(m, X) for n, m in (("a", nn.ReLU()), ("b", nn.Tanh()))}
    edge = to_edge(programs)
    generate_etrecord(tmp_path / "net.etrecord", edge, edge.to_executorch())
    again = parse_etrecord(tmp_path / "net.etrecord")
    assert sorted(again.edge_programs()) == sorted(again._debug_handle_map) == ["a", "b"]


def test_none_was_kept():
    with pytest.raises(ConfigError, match="generate_etrecord=True"):
        to_edge(torch.export.export(nn.ReLU(), X)).to_executorch().get_etrecord()
