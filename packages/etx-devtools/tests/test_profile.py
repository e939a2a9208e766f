# SPDX-License-Identifier: BSD-3-Clause
"""`etx profile`: times add up, and lead to modules and source lines."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import etx_schema as es
import numpy as np
import pytest
import torch
from etx_devtools.etdump import Run, Span, ThreadSpan, read_etdump, to_python
from etx_devtools.profile import VIEWS, chrome_trace, lines, profile_of
from etx_devtools.profile.command import register
from etx_devtools.profile.work import Peak, Work
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize
from etx_runtime import Recorder, Runtime, set_num_threads
from etx_runtime.commands.selection import select_values
from etx_schema import EtxError, cli
from etx_schema.pte import NamedBlob


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.linear(x), -1)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(Block(), Block())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.layers(x))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.pte"
    program = torch.export.export(Net().eval(), (torch.ones(4, 8),))
    to_edge(program).to_executorch().save(str(path))
    return path


def profile(*arguments: str) -> None:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    options = parser.parse_args(["profile", *arguments])
    options.run(options)


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    profile(*arguments, "--json")
    return json.loads(capsys.readouterr().out)


def test_lines_add_up(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for view in VIEWS:
        found = document(capsys, str(model), "--by", view, "--executions", "3")
        assert (found["by"], found["executions"], found["attributed"]) == (view, 3, 1.0)
        top = [line for line in found["lines"] if line["depth"] == 0]
        assert sum(line["share"] for line in top) == pytest.approx(1, abs=0.5)
        assert found["recording_ns"] > 0
        assert found["untraced_ms"] > 0
        assert found["load_ms"] > 0


def test_modules_are_a_tree(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, str(model), "--by", "module", "--executions", "3")["lines"]
    names = [("  " * line["depth"] + line["name"], line["calls"]) for line in found]
    assert names == [
        ("(model)", 5),
        ("  layers", 4),
        ("    0", 2),
        ("      linear", 1),
        ("    1", 2),
        ("      linear", 1),
    ]


def test_what_instructions_do(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FLOP and bytes from the shapes; of a softmax only the latter are known."""
    found = document(capsys, str(model), "--by", "instruction", "--executions", "3")
    work = {line["name"]: (line["flop"], line["bytes"]) for line in found["lines"]}
    assert work["0 aten::linear.out"] == (2 * 4 * 8 * 8, 4 * (4 * 8 + 8 * 8 + 8 + 4 * 8))
    assert work["1 aten::_softmax.out"] == (None, 2 * 4 * 4 * 8)
    assert found["peak_gflop_s"] > 0
    assert min(found["peak_gb_s"].values()) > 0
    line = found["lines"][0]
    assert line["gflop_s"] == pytest.approx(line["flop"] / line["ms"] / 1e6)
    (small, *_) = found["peak_gb_s"].values()
    shares = (line["gflop_s"] / found["peak_gflop_s"], line["gb_s"] / small)
    assert line["of_peak"] in (None, pytest.approx(max(shares)))
    assert all((line["of_peak"] is None) == (line["ms"] < 2e-4) for line in found["lines"])
    profile(str(model), "--by", "instruction", "--executions", "2")
    assert "the instructions' sum is" in capsys.readouterr().out


def test_no_instruction_does_more_than_the_machine_can() -> None:
    """The peak is what NumPy reaches or an instruction; what is too short for a rate has none."""
    peak = Peak(100.0, {8: 40.0, 32: 20.0, 128: 10.0})
    assert peak.raised([]) == peak
    reached = [(Work(300, 32), 1.0), (Work(10**9, 10**9), 1e-7), (Work(None, None), 1.0)]
    assert peak.raised(reached) == Peak(300.0, {8: 40.0, 32: 32.0, 128: 10.0})
    assert peak.raised([(Work(0, 1000), 1.0)]).bytes == {8: 1000.0, 32: 1000.0, 128: 1000.0}


class Picking(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(1000, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table(x)[:, 1:]


def test_of_a_table_only_the_rows_that_are_read_count() -> None:
    program = torch.export.export(Picking().eval(), (torch.ones(1, 8, dtype=torch.int64),))
    pte = es.read_pte(bytes(to_edge(program).to_executorch().buffer))
    embedding, *_ = profile_of(pte, [Run("Execute")]).steps
    assert embedding.name == "aten::embedding.out"
    assert embedding.work.bytes == 8 * 8 + 2 * 8 * 4 * 4


class Convolutions(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Conv2d(4, 8, 3, groups=2)
        self.two = torch.nn.ConvTranspose2d(8, 6, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.bmm(self.two(self.one(x)).flatten(2), torch.ones(2, 64, 3))


def test_flop_of_convolutions() -> None:
    program = torch.export.export(Convolutions().eval(), (torch.ones(2, 4, 6, 6),))
    pte = es.read_pte(bytes(to_edge(program).to_executorch().buffer))
    steps = profile_of(pte, [Run("Execute")]).steps
    found = [step.work.flop for step in steps if step.work.flop is not None]
    one = 2 * (2 * 8 * 4 * 4) * (2 * 3 * 3)
    two = 2 * (2 * 8 * 4 * 4) * (6 * 2 * 2)
    assert found == [one, two, 2 * (2 * 6 * 3) * 64]


def test_int8_does_as_many() -> None:
    """Packed weights, of which the shape says less, in groups, by channel, transposed."""
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Conv2d(8, 8, 3, groups=8)]
    layers += [torch.nn.Conv2d(8, 12, 3, 2, groups=2), torch.nn.ConvTranspose2d(12, 5, 2, 2)]
    net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(720, 7)).eval()
    x = torch.randn(1, 3, 16, 16)
    found = []
    for module in (net, quantize(net, [(x,)])):
        finished = to_edge(torch.export.export(module, (x,))).to_executorch()
        steps = profile_of(es.read_pte(bytes(finished.buffer)), [Run("Execute")]).steps
        found.append([step.work.flop for step in steps if step.work.flop is not None])
        names = [step.name for step in steps]
    assert {"etx::quantized_conv.out", "etx::quantized_depthwise_conv.out"} <= set(names)
    assert "aten::convolution.out" not in names
    one, other = found
    assert one == other
    assert len(one) == 5


def test_weights_in_half_do_as_many() -> None:
    layers = [torch.nn.Conv2d(4, 8, 3, 2), torch.nn.Conv2d(8, 6, (2, 3), groups=2)]
    layers += [torch.nn.Conv2d(6, 5, 1), torch.nn.Flatten(), torch.nn.Linear(80, 7)]
    net, x = torch.nn.Sequential(*layers).eval(), torch.ones(1, 4, 12, 13)
    edge = to_edge(torch.export.export(net, (x,)))
    found = []
    for precision in ("float32", "bf16"):
        manager = edge.to_executorch(ExecutorchBackendConfig(precision=precision))
        steps = profile_of(es.read_pte(bytes(manager.buffer)), [Run("Execute")]).steps
        found.append([step.work.flop for step in steps if step.work.flop is not None])
        names = [step.name for step in steps]
    assert names.count("etx::narrow_conv.out") == 3
    assert found[0] == found[1]
    assert len(found[0]) == 4


class Attention(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def test_attention_does_as_many_as_its_products() -> None:
    inputs = (torch.ones(2, 3, 5, 8), torch.ones(2, 3, 7, 8), torch.ones(2, 3, 7, 4))
    edge = to_edge(torch.export.export(Attention(), inputs))
    found = []
    for target in ("etx", "executorch"):
        manager = edge.to_executorch(ExecutorchBackendConfig(target=target))
        steps = profile_of(es.read_pte(bytes(manager.buffer)), [Run("Execute")]).steps
        found.append([step.work.flop for step in steps if step.work.flop is not None])
    assert found[0] == [sum(found[1])]
    assert len(found[1]) == 2


@pytest.mark.filterwarnings("ignore:LSTM with projections", "ignore:The tensor attributes")
@pytest.mark.parametrize("options", [{}, {"proj_size": 2}, {"bidirectional": True}])
def test_a_recurrent_layer_does_as_many_as_its_steps(options: dict[str, Any]) -> None:
    net = torch.nn.LSTM(4, 5, **options).eval()
    ways, width = 2 if "bidirectional" in options else 1, options.get("proj_size", 5)
    states = (torch.ones(ways, 2, width), torch.ones(ways, 2, 5))
    edge = to_edge(torch.export.export(net, (torch.ones(3, 2, 4), states)))
    found = []
    for target in ("etx", "executorch"):
        manager = edge.to_executorch(ExecutorchBackendConfig(target=target))
        steps = profile_of(es.read_pte(bytes(manager.buffer)), [Run("Execute")]).steps
        found.append([step.work.flop for step in steps if step.work.flop is not None])
    assert sum(found[0]) == sum(found[1])
    assert len(found[0]) < len(found[1])


@pytest.mark.filterwarnings("ignore:LSTM with projections", "ignore:The tensor attributes")
@pytest.mark.parametrize("options", [{}, {"proj_size": 2}])
def test_integer_weights_are_as_many_multiplications(options: dict[str, Any]) -> None:
    net, inputs = torch.nn.LSTM(4, 5, **options).eval(), (torch.ones(3, 2, 4),)
    found = []
    for model in (net, quantize(net, [inputs], recipe="int8-weight")):
        buffer = to_edge(torch.export.export(model, inputs)).to_executorch().buffer
        steps = profile_of(es.read_pte(bytes(buffer)), [Run("Execute")]).steps
        found.append([step.work.flop for step in steps if step.work.flop is not None])
    assert found[0] == found[1]


@pytest.mark.parametrize("view", VIEWS)
def test_two_files_side_by_side(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], view: str
) -> None:
    other = tmp_path / "shorter.pte"
    program = torch.export.export(Block().eval(), (torch.ones(4, 8),))
    to_edge(program).to_executorch().save(str(other))
    arguments = (str(model), str(other), "--by", view, "--executions", "2")
    found = document(capsys, *arguments)
    assert [each["file"] for each in found["files"]] == [str(model), str(other)]
    rows = [(row["before_ms"], row["after_ms"]) for row in found["pairs"]]
    changes = [abs((after or 0) - (before or 0)) for before, after in rows]
    assert changes == sorted(changes, reverse=True)
    assert any(after is None for _, after in rows)
    if view == "operator":
        names = {row["name"] for row in found["pairs"] if row["ratio"]}
        assert names == {"aten::linear.out", "aten::_softmax.out"}
    profile(*arguments)
    out = capsys.readouterr().out
    assert "times the first's time" in out
    assert out.splitlines()[0].split() == [view, "first", "second", "change", "ratio"]
    with pytest.raises(EtxError, match="--etdump and --trace are of one file; two were given"):
        profile(*arguments, "--trace", str(tmp_path / "t.json"))


def test_source_lines(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, str(model), "--by", "line", "--executions", "2")["lines"]
    assert {line["name"].partition(":")[0] for line in found} == {"test_profile.py"}
    assert sorted(line["calls"] for line in found) == [1, 4]


def test_a_trace_is_what_viewers_read(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    profile(str(model), "--executions", "50", "--trace", str(path))
    events = json.loads(path.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert len(spans) == 2 + 50 * 6
    assert {"name", "ph", "ts", "dur", "pid", "tid", "args"} == {key for e in spans for key in e}
    assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in spans)
    (linear,) = [event for event in spans if event["args"].get("instruction") == 2][:1]
    assert linear["name"] == "aten::linear.out"
    assert linear["args"]["line"].startswith("test_profile.py:")
    assert linear["args"]["module"] == "layers.1.linear"
    assert linear["args"]["shape"] == "float32[4, 8]"
    assert path.stat().st_size / len(events) <= 200


class Wide(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ x)


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    path = tmp_path / "wide.pte"
    program = torch.export.export(Wide().eval(), (torch.ones(512, 512),))
    to_edge(program).to_executorch().save(str(path))
    return path


@pytest.mark.parametrize("is_recorded", [False, True])
def test_threads_are_lanes(wide: Path, tmp_path: Path, is_recorded: bool) -> None:
    """Of what `etx profile` runs, and of what `etx run --etdump-threads` wrote."""
    out, dump = tmp_path / "trace.json", tmp_path / "wide.etdp"
    options = ["--executions", "20", "--threads", "2"]
    recorded = ["--iterations", "20", "--threads", "2", "--etdump", str(dump), "--etdump-threads"]
    lanes, limit = {}, time.monotonic() + 60
    try:
        while len(lanes) < 2 and time.monotonic() < limit:
            if is_recorded:
                assert cli.main(["run", str(wide), *recorded]) == 0
                options = ["--etdump", str(dump)]
            profile(str(wide), *options, "--trace", str(out))
            events = json.loads(out.read_text())["traceEvents"]
            lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    finally:
        set_num_threads(0)
    assert lanes == {0: "forward", 1: "thread 1"}
    calls = [e for e in events if "line" in e["args"]]
    parts = [e for e in events if "items" in e["args"]]
    assert len(calls) == 40
    assert {event["name"] for event in parts} <= {"aten::mm.out", "aten::tanh.out"}
    assert {event["tid"] for event in parts} == {0, 1}
    for part in parts:
        assert any(
            call["args"]["instruction"] == part["args"]["instruction"]
            and call["ts"] <= part["ts"] + 0.002
            and part["ts"] + part["dur"] <= call["ts"] + call["dur"] + 0.002
            for call in calls
        )
    assert out.stat().st_size / len(events) <= 200


def test_a_dump_from_elsewhere(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder("all")
    method = Runtime.get().load_program(model).load_method("forward", recorder=recorder)
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    (y,) = method.trace([x], recorder)
    recorder.save(tmp_path / "a.etdp", tmp_path / "a.bin")
    found = document(capsys, str(model), "--etdump", str(tmp_path / "a.etdp"), "--tick-ns", "2")
    other = document(capsys, str(model), "--etdump", str(tmp_path / "a.etdp"))
    assert found["total_ms"] == pytest.approx(2 * other["total_ms"])
    assert (found["untraced_ms"], found["recording_ns"]) == (None, 0)
    run = read_etdump(tmp_path / "a.etdp")[1]
    values = [to_python(seen.value, (tmp_path / "a.bin").read_bytes()) for seen in run.seen]
    np.testing.assert_array_equal(values[-1], y)
    assert run.seen[-1].is_output
    assert [seen.instruction for seen in run.seen[:-1]] == [0, 1, 2, 3, 4]


def test_a_dump_of_another_program(model: Path, tmp_path: Path) -> None:
    other = torch.export.export(torch.nn.Sequential(Block(), torch.nn.Tanh()), (torch.ones(4, 8),))
    to_edge(other).to_executorch().save(str(tmp_path / "other.pte"))
    recorder = Recorder()
    method = Runtime.get().load_program(tmp_path / "other.pte").load_method("forward")
    method.trace([np.ones((4, 8), "f4")], recorder)
    recorder.save(tmp_path / "other.etdp")
    with pytest.raises(
        EtxError, match=r"tanh\.out at instruction 2, which calls aten::linear\.out"
    ):
        profile(str(model), "--etdump", str(tmp_path / "other.etdp"))


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ("layers.1", [2, 3]),
        ("all,layers.0.linear,4", [0, 4]),
        ("1-2", [1, 2]),
        ("all", [*range(5)]),
    ],
)
def test_values_of_modules_and_ranges(
    model: Path, tmp_path: Path, values: str, kept: list[int]
) -> None:
    selected = select_values(values, str(model), "forward")
    recorder = Recorder(selected.values, instructions=selected.instructions)
    Runtime.get().load_program(model).load_method("forward").trace(
        [np.ones((4, 8), "f4")], recorder
    )
    (run,) = read_etdump(recorder.etdump())
    assert [seen.instruction for seen in run.seen if not seen.is_output] == kept
    with pytest.raises(
        EtxError, match=r"--values head: .* module with instructions \(it has: layers"
    ):
        select_values("head", str(model), "forward")


def test_parts_of_delegates_stand_below_them() -> None:
    pte = es.read_pte(Path(__file__).parent / "data" / "delegated.pte")
    (method,) = [plan.name for plan in pte.program.execution_plan if plan.delegates][:1]
    steps = profile_of(pte, [Run("Execute")], method=str(method)).steps
    (call,) = [step.index for step in steps if "delegate" in step.text][:1]
    spans = [Span("a", 0, call, 0, 3, "a"), Span("DELEGATE_CALL", 0, call, 0, 10)]
    runs = [Run("Execute", spans=spans)] * 2
    found = profile_of(pte, runs, method=str(method), tick_ms=1.0)
    assert [(line.depth, line.name, line.ms) for line in lines(found)][:2] == [
        (0, found.steps[call].name, 10),
        (1, "a", 3),
    ]
    assert [e["dur"] for e in chrome_trace(found, tick_ms=1.0)["traceEvents"][2:4]] == [3e3, 1e4]


def test_what_is_in_delegates_belongs_to_its_module_and_line() -> None:
    """By the ids of the delegate's parts; what they do not account for is the delegate's."""
    pte = es.read_pte(Path(__file__).parent / "data" / "delegated.pte")
    row = {"module": "", "source": "net.py:1", "handles": [1, 2], "ids": {"a": [1], "7": [2]}}
    inner = {"1": {"module": "one", "source": "net.py:5"}, "2": {"module": "two.x"}}
    origins = {"encode": {"instructions": [row], "handles": inner}}
    pte.named_data["etx/debug"] = NamedBlob(json.dumps(origins).encode())
    parts = [("a", "a", 0, 3), ("7", 7, 3, 5), ("other", "other", 5, 6)]
    spans = [Span(name, 0, 0, start, end, key) for name, key, start, end in parts]
    spans.append(Span("DELEGATE_CALL", 0, 0, 0, 10))
    found = profile_of(pte, [Run("Execute", spans=spans)], method="encode", tick_ms=1.0)
    modules = {line.module: (line.ms, line.own_ms) for line in lines(found, "module")}
    assert modules == {"": (10, 5), "one": (3, 3), "two": (2, 0), "two.x": (2, 2)}
    by_line = {line.name: (line.depth, line.ms) for line in lines(found, "line")}
    assert by_line == {
        "net.py:1": (0, 5),
        "other": (1, 1),
        "net.py:5": (0, 3),
        "(unknown)": (0, 2),
    }


@pytest.mark.parametrize(("untraced", "excess"), [([], 1), ([39], 1.5), ([19], 2), ([90], 0.5)])
def test_the_cost_of_recording_is_taken_off(untraced: list[float], excess: float) -> None:
    """That of events in a delegate off the delegate's time, between half and twice the least."""
    pte = es.read_pte(Path(__file__).parent / "data" / "delegated.pte")
    spans = [Span(name, 0, 0, 0, 1, name) for name in "abc"] + [Span("DELEGATE_CALL", 0, 0, 0, 99)]
    runs = [Run("Execute", spans=[*spans, Span("Method::execute", -1, 0, 0, 100)])]
    options = {"method": "encode", "tick_ms": 1.0, "cost_ms": 10, "inner_cost_ms": 10}
    found = profile_of(pte, runs, untraced_ms=untraced, **options)
    assert (found.cost_ms, found.inner_cost_ms) == (10 * excess, 10 * excess)
    assert found.total_ms == 99 - 40 * excess
    assert [part.ms for step in found.steps for part in step.parts.values()] == 3 * [[1]]


@pytest.mark.parametrize(
    ("calls", "untraced", "excess"), [(1, 50, 5), (2, 9, 6), (80, 7600, 0.5), (80, 4800, 2.1)]
)
def test_the_first_events_of_an_execution_take_longer(
    calls: int, untraced: float, excess: float
) -> None:
    """A program of few instructions consists of them; of many, noise stays bounded."""
    pte = es.read_pte(Path(__file__).parent / "data" / "delegated.pte")
    spans = [Span("DELEGATE_CALL", 0, 0, 0, 100) for _ in range(calls)]
    found = profile_of(
        pte,
        [Run("Execute", spans=spans)],
        method="encode",
        tick_ms=1.0,
        untraced_ms=[untraced],
        cost_ms=10,
    )
    assert found.cost_ms == pytest.approx(10 * excess)


def test_what_does_not_fit_is_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pte = es.read_pte(model)
    with pytest.raises(es.EtxError, match="no execution of method 'forward'"):
        profile_of(pte, [])
    with pytest.raises(es.EtxError, match="instruction 99 of chain 0, the method has 5"):
        profile_of(pte, [Run("Execute", spans=[Span("OPERATOR_CALL", 0, 99, 0, 1)])])
    with pytest.raises(es.EtxError, match="instruction 99 of chain 0, the method has 5"):
        profile_of(pte, [Run("Execute", threads=[ThreadSpan(0, 99, 1, 1, 0, 1)])])
    with pytest.raises(es.EtxError, match="no method 'other'"):
        profile_of(pte, [], method="other")
    with pytest.raises(es.EtxError, match="expected one of operator"):
        lines(profile_of(pte, [Run("Execute")]), "colour")
    with pytest.raises(SystemExit):
        profile(str(model), "--tick-ns", "0")
    assert "above 0" in capsys.readouterr().err
