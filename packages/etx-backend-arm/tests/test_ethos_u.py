# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import importlib.metadata
import re
import struct
from pathlib import Path
from random import Random
from typing import Any

import keyword_spotting
import pytest
import torch
from etx_backend_arm.ethos_u import vela
from etx_backend_arm.ethos_u.backend import EthosUPartitioner, EthosUQuantizer
from etx_backend_arm.ethos_u.blob import EthosUBlob, Port, read_blob, write_blob
from etx_backend_arm.ethos_u.compile_spec import TARGETS, EthosUCompileSpec
from etx_backend_arm.ethos_u.describe import describe_blob
from etx_backend_arm.ethos_u.report import layer_at
from etx_backend_arm.ethos_u.targets import PARTITIONERS
from etx_exir import CompileSpec
from etx_exir.errors import BackendError
from etx_quant import quantize, quantize_edges
from etx_schema import NamedBlob, ProgramError
from integers import Between, integers
from lowered import delegates, lower
from test_simulator import prepared
from torch import nn

SPEC = EthosUCompileSpec("ethos-u55-128")
PORT = Port((1, 1, 1, 49, 10, 1), 1, 11360, 1)
BLOB = EthosUBlob(b"COP1" + bytes(15), b"weights", 22080, (PORT,), (PORT, PORT))


def test_a_network_is_one_delegate_with_its_commands_and_weights() -> None:
    model, (x,) = keyword_spotting.quantized(), keyword_spotting.samples(1)
    program = lower(model, x, partitioner=EthosUPartitioner(SPEC))
    assert len([n for n in program.graph.nodes if n.op == "call_function"]) == 2
    (delegate,) = delegates(program)
    blob = read_blob(delegate.processed_bytes)
    assert blob.commands[:4] == b"COP1"
    assert [port.shape for port in blob.inputs] == [(1, 1, 1, 49, 10, 1)]
    assert [port.shape for port in blob.outputs] == [(1, 1, 1, 1, 1, 12)]
    assert blob.scratch_size <= 23 * 1024
    assert {s.key: s.value for s in delegate.compile_specs}["vela"] == vela.VERSION.encode()
    named = {k: NamedBlob(data) for k, data in delegate.named_data_store_output.items()}
    check_report(describe_blob(delegate.processed_bytes, named))
    lines = describe_blob(delegate.processed_bytes, {})["lines"]
    assert lines[0].startswith(f"bytes: command {len(blob.commands)} weight {len(blob.weights)}")
    assert lines[1].startswith("input 0: 1x1x1x49x10x1 of 1 bytes at offset")


def check_report(document: dict[str, Any]) -> None:
    """Each of the layers has its operator, line and MACs, as Vela counts them."""
    report = document["report"]
    layers = report["layers"]
    assert [each["op"] for each in layers] == [
        *["aten.convolution.default"] * 9,
        "aten.avg_pool2d.default",
        "aten.linear.default",
    ]
    assert all(".py:" in each["source"] and each["cycles"] > 0 for each in layers)
    assert sum(each["macs"] for each in layers) == report["macs"]
    assert sum(each["cycles"] for each in layers) == report["cycles"]
    ends = [end for each in layers for end in each["commands"]]
    assert len(set(ends)) == len(ends)
    assert [layer_at(report, end)["cycles"] for end in ends] == [
        each["cycles"] for each in layers for _ in each["commands"]
    ]
    assert layer_at(report, 0) is layers[0]
    assert layer_at(report, max(ends) + 4) is None
    assert document["summary"] in document["lines"]
    assert document["summary"].startswith(f"Vela {vela.VERSION} for ethos-u55-128: ")


def test_the_layout_of_a_blob_is_the_one_written_down() -> None:
    def block(name: bytes, data: bytes) -> bytes:
        head = name.ljust(16, b"\0") + struct.pack("<IB", len(data), 0) + bytes(11)
        return head + data + bytes(-len(data) % 16)

    port = struct.pack("<9i", 1, 1, 1, 49, 10, 1, 1, 11360, 1)
    assert write_blob(BLOB) == b"".join(
        [
            block(b"vela_bin_stream", b""),
            block(b"cmd_data", BLOB.commands),
            block(b"weight_data", b"weights"),
            block(b"scratch_size", struct.pack("<I", 22080)),
            block(b"inputs", struct.pack("<i", 1) + port),
            block(b"outputs", struct.pack("<i", 2) + port + port),
            block(b"vela_end_stream", b""),
        ]
    )


@pytest.mark.parametrize("weights", [b"weights", b"", "a key"])
def test_a_blob_reads_back_as_written(weights: bytes | str) -> None:
    blob = EthosUBlob(BLOB.commands, weights, 7, (), BLOB.outputs)
    assert read_blob(write_blob(blob)) == blob


def test_a_damaged_blob_is_read_or_refused() -> None:
    data, random, refused = write_blob(BLOB), Random(0), 0
    for _ in range(2000):
        changed = bytearray(data[: random.randrange(len(data) + 1)] or data)
        changed[random.randrange(len(changed))] = random.randrange(256)
        try:
            read_blob(bytes(changed))
        except ProgramError:
            refused += 1
    assert refused > 1000


def test_what_is_over_a_limit_stays_outside() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 2, stride=4), nn.Conv2d(4, 4, 1))
    batch = (torch.randn(1, 3, 16, 16),)
    quantized = quantize(model.eval(), [batch], EthosUQuantizer(SPEC))
    partitioner = EthosUPartitioner(SPEC)
    program = lower(quantized, *batch, partitioner=partitioner)
    assert len(delegates(program)) == 2
    (left,) = [n for n in program.graph.nodes if n.target is torch.ops.aten.convolution.default]
    reason = partitioner.why_not(left) or ""
    assert reason == "CONV2D on ethos-u55: a stride of [4, 4]; at most 3"


def test_padding_that_registers_do_not_hold_stays_outside() -> None:
    batch = (torch.randn(1, 3, 9, 9),)
    model = nn.Conv2d(3, 4, (1, 66), padding=(0, 130), dilation=2).eval()
    partitioner = EthosUPartitioner(SPEC)
    program = lower(
        quantize(model, [batch], EthosUQuantizer(SPEC)), *batch, partitioner=partitioner
    )
    (left,) = [n for n in program.graph.nodes if n.target is torch.ops.aten.convolution.default]
    assert "padding of [0, 0, 130, 130]; at most 127" in (partitioner.why_not(left) or "")


def test_what_computes_nothing_stays_outside() -> None:
    model, inputs = Between(lambda x: x.permute(0, 1), x := integers(81, 81)).eval(), (x,)
    program = lower(model, *inputs, partitioner=EthosUPartitioner(SPEC))
    assert delegates(program) == []


def test_every_target_is_a_backend_of_the_command() -> None:
    entries = importlib.metadata.entry_points(group="etx.backends")
    names = {entry.name for entry in entries if entry.value.startswith("etx_backend_arm.ethos_u")}
    assert names == set(TARGETS)
    made = PARTITIONERS["ethos_u65_256"]([CompileSpec("memory_mode", b"Dedicated_Sram")])
    assert "--memory-mode=Dedicated_Sram" in made.target.flags


def test_options_that_are_not_known_are_refused() -> None:
    with pytest.raises(BackendError, match=r"'ethos-u55-100'; expected one of ethos-u55-32, "):
        EthosUCompileSpec("ethos-u55-100")
    with pytest.raises(BackendError, match="no option 'fast'; it has target, "):
        EthosUCompileSpec.from_list([CompileSpec("fast", b"1")])
    with pytest.raises(BackendError, match=r"target=\.\.\. is missing"):
        EthosUCompileSpec.from_list([])


def test_what_vela_says_is_in_the_error(tmp_path: Path) -> None:
    model, (x,) = nn.Conv2d(3, 4, 1).eval(), (torch.randn(1, 3, 8, 8),)
    (floats,) = delegates(lower(model, x))
    with pytest.raises(BackendError, match=r"could not compile the graph for ethos-u55-128:\n"):
        vela.compile_graph(floats.processed_bytes, SPEC)
    spec = EthosUCompileSpec("ethos-u55-128", system_config="Nothing")
    with pytest.raises(BackendError, match="Nothing"):
        vela.compile_graph(floats.processed_bytes, spec)
    ini = tmp_path / "board.ini"
    ini.write_text("[System_Config.S]\ncore_clock=1e6\naxi0_port=Nowhere\naxi1_port=Sram\n")
    for name, reason in (
        ("S", rf"KeyError: 'Nowhere'\n  it was called with .*--config={ini} --system-config=S"),
        ("T", r"Section System_Config\.T not found in Vela config file"),
    ):
        spec = EthosUCompileSpec("ethos-u55-128", system_config=name, config_ini=str(ini))
        with pytest.raises(BackendError, match=reason):
            vela.compile_graph(floats.processed_bytes, spec)
    spec = EthosUCompileSpec("ethos-u55-128", memory_mode="Nothing")
    with pytest.raises(BackendError, match=r"Section Memory_Mode\.Nothing not found"):
        vela.compile_graph(floats.processed_bytes, spec)
    spec = EthosUCompileSpec("ethos-u55-128", config_ini=str(tmp_path / "none.ini"))
    with pytest.raises(BackendError, match=r"none\.ini': File not found"):
        vela.compile_graph(floats.processed_bytes, spec)


SMALL = """[System_Config.Board]
core_clock=500e6
axi0_port=Sram
axi1_port=OffChipFlash
Sram_clock_scale=1.0
OffChipFlash_clock_scale=0.125
[Memory_Mode.Board]
const_mem_area=Axi1
arena_mem_area=Axi0
cache_mem_area=Axi0
arena_cache_size={}
"""


def test_sram_that_is_too_small_is_refused_with_operator_and_line(tmp_path: Path) -> None:
    model, x = prepared(nn.Conv2d(3, 24, 3, padding=1))
    ini = tmp_path / "board.ini"
    spec = EthosUCompileSpec("ethos-u55-128", "Board", "Board", config_ini=str(ini))

    def needed() -> int:
        (delegate,) = delegates(lower(model, x, partitioner=EthosUPartitioner(spec)))
        return read_blob(delegate.processed_bytes).scratch_size

    ini.write_text(SMALL.format(1 << 20))
    size = needed()
    ini.write_text(SMALL.format(size))
    assert needed() == size
    ini.write_text(SMALL.format(1024))
    reason = (
        r"ethos-u55-128 has 1,024 bytes of SRAM \(arena_cache_size of the configuration file\), "
        r"and the graph takes ([\d,]+), ([\d,]+) more; of its operators "
        r"aten\.convolution\.default at .*\.py:\d+ takes most, [\d,]+: give a memory mode with"
    )
    with pytest.raises(BackendError, match=reason) as caught:
        needed()
    found = re.search(reason, str(caught.value))
    assert found is not None
    taken, more = (int(text.replace(",", "")) for text in found.groups())
    assert taken - more == 1024


@pytest.mark.parametrize("target", ["ethos-u65-256", "ethos-u85-256"])
def test_an_arena_in_dram_has_a_small_sram(target: str) -> None:
    model, x = prepared(nn.Conv2d(3, 24, 3, padding=1))
    spec = EthosUCompileSpec(target, memory_mode="Dedicated_Sram_256KB")
    assert len(delegates(lower(model, x, partitioner=EthosUPartitioner(spec)))) == 1


def test_a_vela_that_is_missing_or_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vela, "version", lambda name: "5.1.0")
    with pytest.raises(BackendError, match=r"Vela 5\.1\.0 is installed, expected 5\.2\.0: install"):
        vela.vela_version()

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(vela, "version", missing)
    with pytest.raises(BackendError, match=r"Vela is not installed: install .*\[aot\]"):
        EthosUPartitioner(SPEC)


def test_quantized_edges_cross_as_integers() -> None:
    model = quantize(nn.Linear(8, 4).eval(), [(torch.randn(3, 8),)], EthosUQuantizer(SPEC))
    quantize_edges(model)
    x = torch.zeros(3, 8, dtype=torch.int8)
    (delegate,) = delegates(lower(model, x, partitioner=EthosUPartitioner(SPEC)))
    assert read_blob(delegate.processed_bytes).inputs[0].element_size == 1
