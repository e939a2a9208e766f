# SPDX-License-Identifier: BSD-3-Clause
"""Planned memory recomputed from a file: what is live when, as numbers, text and pictures."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from etx_schema import (
    Bool,
    Chain,
    DelegateCall,
    EValue,
    ExecutionPlan,
    Instruction,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    NamedBlob,
    Operator,
    Program,
    ProgramError,
    PteFile,
    cli,
    read_pte,
    write_pte,
)
from etx_schema.inspect.memory import memory_of
from etx_schema.inspect.memory_labels import bytes_text
from etx_schema.inspect.memory_report import lines
from etx_schema.inspect.svg import ticks
from hypothesis import given
from hypothesis import strategies as st
from programs import tensor

OPS = ["aten::mm.out", "aten::copy_", "aten::relu_", "executorch_prim::et_copy_index.tensor"]
MM, COPY, RELU, ROW = range(4)


def method(values, steps, inputs=(), outputs=(), arenas=(1 << 20,), named=None):
    """Build a file of one method; a step is (operator, arguments) or an instruction."""
    calls = [KernelCall(op_index=s[0], args=s[1]) if isinstance(s, tuple) else s for s in steps]
    plan = ExecutionPlan(
        name="forward",
        values=values,
        inputs=list(inputs),
        outputs=list(outputs),
        chains=[Chain(instructions=[Instruction(call) for call in calls])],
        operators=[Operator(*[*name.split("."), ""][:2]) for name in OPS],
        non_const_buffer_sizes=[0, *arenas],
    )
    return PteFile(program=Program(execution_plan=[plan]), named_data=named or {})


def arena(pte):
    ((only,),) = [m.arenas for m in memory_of(pte)]
    return only


def row(tensor_):
    """Return (name, first, last) of an allocation."""
    return (tensor_.name, tensor_.first, tensor_.last)


def chain():
    """x -> a -> b -> y, each of 64 bytes."""
    values = [tensor((16,), 64 * i) for i in range(4)]
    steps = [(MM, [i, i, i + 1, i + 1]) for i in range(3)]
    return method(values, steps, inputs=[0], outputs=[3], arenas=(256,))


def test_a_chain():
    found = arena(chain())
    assert found.load == [64, 128, 128, 128, 64]
    assert (found.size, found.largest_live_set, found.fullest_step, found.gap) == (256, 128, 1, 1.0)
    assert [row(t) for t in found.allocations] == [
        ("in0", 0, 1),
        ("%1", 1, 2),
        ("%2", 2, 3),
        ("%3", 3, 4),
    ]
    assert [t.kind for t in found.allocations] == ["input", *["intermediate"] * 2, "output"]
    assert [size for size, _ in found.at(2)] == [64, 64]


def test_parts_of_a_tensor_go_when_their_last_view_is_read():
    views = [tensor((16,), 64 * i) for i in range(4)]
    out = [tensor((16,), 256 + 64 * i) for i in range(4)]
    values = [tensor((64,), 0), *views, *out]
    steps = [(MM, [1 + i, 1 + i, 5 + i, 5 + i]) for i in range(4)]
    found = arena(method(values, steps, inputs=[0], outputs=[5, 6, 7, 8]))
    assert found.load == [256, 320, 320, 320, 320, 256]
    assert [row(t)[1:] for t in found.allocations if t.kind == "input"] == [
        (0, i) for i in (1, 2, 3, 4)
    ]


def test_state_is_live_throughout():
    values = [tensor((4,), 0, data=1), tensor((4,), 16), tensor((4,), 32)]
    steps = [(MM, [0, 1, 2, 2]), (COPY, [0, 2, 0])]
    found = arena(method(values, steps, inputs=[1]))
    assert found.load == [32, 48, 32, 16]
    assert row(found.allocations[0]) == ("%0", 0, 3)
    assert found.allocations[0].kind == "state"


def test_state_without_initial_value():
    values = [tensor((4,), 0), tensor((4,), 16), tensor((4,), 32)]
    steps = [(MM, [0, 1, 2, 2]), (COPY, [0, 2, 0])]
    assert arena(method(values, steps, inputs=[1])).load == [32, 48, 32, 16]


def test_a_result_that_nobody_reads_takes_memory_for_one_instruction():
    values = [tensor((4,), 0), tensor((4,), 16), tensor((4,), 32)]
    steps = [(MM, [0, 0, 1, 1]), (MM, [0, 0, 2, 2])]
    assert arena(method(values, steps, inputs=[0], outputs=[2])).load == [16, 32, 32, 16]


def test_in_place():
    values = [tensor((4,), 0), tensor((4,), 16)]
    steps = [(MM, [0, 0, 1, 1]), (RELU, [1, 1])]
    assert arena(method(values, steps, inputs=[0], outputs=[1])).load == [16, 32, 16, 16]


def test_what_a_loop_reads_again_stays():
    """x and the carry live through the loop; the rows are not live before it."""
    false, again = EValue(Bool(bool_val=False)), EValue(Bool(bool_val=True))
    values = [tensor((4,), 0), tensor((4,), 16), tensor((4,), 32), tensor((8,), 48), false, again]
    steps = [
        (MM, [0, 0, 1, 1]),
        MoveCall(move_from=5, move_to=5),
        JumpFalseCall(cond_value_index=5, destination_instruction=7),
        (MM, [0, 1, 2, 2]),
        (ROW, [3, 2, 4]),
        (COPY, [1, 2, 4, 1]),
        JumpFalseCall(cond_value_index=4, destination_instruction=2),
        (MM, [3, 3, 1, 1]),
    ]
    found = arena(method(values, steps, inputs=[0], outputs=[1]))
    assert found.load == [16, 32, 32, 64, 80, 64, 80, 64, 48, 16]


def test_branches():
    false = EValue(Bool(bool_val=False))
    taken = EValue(Bool(bool_val=True))
    values = [tensor((4,), 0), tensor((4,), 16), tensor((4,), 32), false, taken]
    steps = [
        MoveCall(move_from=4, move_to=4),
        JumpFalseCall(cond_value_index=4, destination_instruction=4),
        (MM, [0, 0, 2, 2]),
        JumpFalseCall(cond_value_index=3, destination_instruction=5),
        (MM, [1, 1, 2, 2]),
        (MM, [2, 2, 1, 1]),
    ]
    found = arena(method(values, steps, inputs=[0, 1], outputs=[1]))
    assert found.load == [32, 32, 32, 32, 16, 32, 32, 16]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (JumpFalseCall(cond_value_index=0, destination_instruction=9), "it jumps to 9, there are"),
        (JumpFalseCall(cond_value_index=0, destination_instruction=-1), "it jumps to -1, there"),
        (JumpFalseCall(cond_value_index=77, destination_instruction=0), "it names a value"),
    ],
)
def test_an_instruction_of_nothing_is_named(step, said):
    values = [tensor((4,), 0), tensor((4,), 16)]
    with pytest.raises(ProgramError, match=f"'forward', instruction 1: {said}"):
        memory_of(method(values, [(RELU, [0, 0]), step], inputs=[0], outputs=[1]))


def test_several_memories():
    values = [tensor((4,), 0), tensor((4,), 0)]
    values[1].val.allocation_info.memory_id = 2
    (found,) = memory_of(method(values, [(MM, [0, 0, 1, 1])], [0], [1], arenas=(16, 32)))
    assert [(a.memory_id, a.size, a.load) for a in found.arenas] == [
        (1, 16, [16, 16, 0]),
        (2, 32, [0, 16, 16]),
    ]


def test_results_of_a_delegate_are_what_nothing_touched_before():
    values = [tensor((4,), 0), tensor((4,), 16), tensor((4,), 32), tensor((4,), 48)]
    steps = [(MM, [0, 0, 1, 1]), DelegateCall(delegate_index=0, args=[0, 1, 2, 3])]
    found = arena(method(values, steps, inputs=[0], outputs=[2]))
    assert found.load == [16, 32, 64, 16]
    assert [t.op for t in found.allocations][2:] == ["delegate None"] * 2


def live_bytes(spans, steps, inputs, outputs, count):
    """Compute the bytes live at each step grain by grain, by looking ahead."""
    load = [0] * (len(steps) + 2)
    events = [("write", inputs)]
    events += [("step", step) for step in steps]
    events.append(("read", outputs))
    for grain in range(count):

        def covers(value, grain=grain):
            return spans[value][0] <= grain < spans[value][1]

        def reads(event, covers=covers):
            kind, what = event
            values = what if kind == "read" else what[0] if kind == "step" else ()
            return any(map(covers, values))

        def writes(event, covers=covers):
            kind, what = event
            values = what if kind == "write" else [what[1]] if kind == "step" else ()
            return any(map(covers, values))

        for moment in range(len(events)):
            written = any(writes(e) for e in events[:moment])
            later = next((e for e in events[moment:] if reads(e) or writes(e)), None)
            alive = written and later is not None and reads(later)
            load[moment] += alive or writes(events[moment])
    return load


@given(st.data())
def test_random_straight_programs(data):
    """Any spans, views of others included."""
    count = 12
    spans = []
    for _ in range(data.draw(st.integers(2, 8))):
        start = data.draw(st.integers(0, count - 1))
        spans.append((start, data.draw(st.integers(start + 1, count))))
    index = st.integers(0, len(spans) - 1)
    inputs = sorted(data.draw(st.sets(index, min_size=1, max_size=2)))
    steps, seen = [], set(inputs)
    written = {g for i in inputs for g in range(*spans[i])}
    for _ in range(data.draw(st.integers(1, 8))):
        fits = [i for i, span in enumerate(spans) if i in seen or written & set(range(*span))]
        step = (data.draw(st.lists(st.sampled_from(fits), max_size=3)), data.draw(index))
        seen |= {*step[0], step[1]}
        written |= set(range(*spans[step[1]]))
        steps.append(step)
    values = [tensor((4 * (b - a),), 16 * a) for a, b in spans]
    none = EValue(Bool(bool_val=False))
    calls = [(MM, [*reads, len(values), out, out]) for reads, out in steps]
    outputs = [steps[-1][1]]
    found = arena(method([*values, none], calls, inputs, outputs, (16 * count,)))
    expected = live_bytes(spans, steps, inputs, outputs, count)
    assert found.load == [16 * grains for grains in expected]
    for moment, load in enumerate(found.load):
        assert sum(size for size, _ in found.at(moment)) == load


def test_files_of_the_other_exporter(exported):
    for found in memory_of(read_pte(exported)):
        for each in found.arenas:
            assert 0 < each.largest_live_set <= each.size
            for moment, load in enumerate(each.load):
                assert sum(size for size, _ in each.at(moment)) == load


def named_origins():
    rows = [{"module": f"block.{i}", "source": f"net.py:{i + 1}", "op": "mm"} for i in range(3)]
    document = {"forward": {"instructions": rows}}
    return {"etx/debug": NamedBlob(json.dumps(document).encode())}


def file_of(tmp_path):
    pte = chain()
    pte.named_data.update(named_origins())
    write_pte(pte, tmp_path / "chain.pte")
    return tmp_path / "chain.pte"


def test_the_command_prints(tmp_path, capsys):
    assert cli.main(["memory", str(file_of(tmp_path))]) == 0
    out = capsys.readouterr().out
    assert "method forward, memory 1\n  peak               256 bytes" in out
    assert "largest live set   128 bytes, at instruction 0 (aten::mm.out)" in out
    assert "gap                100.0 %" in out
    assert re.search(r"64 +25\.0 %  input in0  float32\[16\]", out)
    assert re.search(r"64 +25\.0 %  mm  float32\[16\]  # block\.0, net\.py:1", out)


def test_the_command_writes(tmp_path, capsys):
    path = file_of(tmp_path)
    for name in ("a.svg", "a.txt", "a.json"):
        assert cli.main(["memory", str(path), "-o", str(tmp_path / name)]) == 0
    assert "256 bytes" in (tmp_path / "a.txt").read_text()
    (found,) = json.loads((tmp_path / "a.json").read_text())["methods"]
    assert found["arenas"][0]["load"] == [64, 128, 128, 128, 64]
    assert found["arenas"][0]["tensors"][1]["module"] == "block.0"
    assert cli.main(["memory", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["methods"] == [found]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "a.svg", "a.txt", "chain.pte"]


def test_the_picture_is_to_scale(tmp_path):
    path = file_of(tmp_path)
    assert cli.main(["memory", str(path), "-o", str(tmp_path / "a.svg")]) == 0
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    boxes = [r for r in root.iter(f"{name}rect") if r.find(f"{name}title") is not None]
    tips = [box.find(f"{name}title").text for box in boxes]
    assert len(boxes) == 4
    assert tips[1].splitlines()[-2:] == ["block.0", "net.py:1"]
    assert "bytes 64 to 128\ninstructions 0 to 1" in tips[1]
    high = {float(box.get("height")) for box in boxes}
    assert high == {420 / 4}
    left = [float(box.get("x")) for box in boxes]
    assert left == sorted(left)
    assert left[1] == pytest.approx(92 + (1240 - 92 - 24) / 5)
    words = [text.text for text in root.iter(f"{name}text")]
    assert "chain.pte: planned memory" in words
    assert "128 B at instruction 0 (mm)" in words
    assert "largest live set 128 B, gap 100.0 %, 4 tensors" in words


@pytest.mark.parametrize("name", ["plan.png", "there/plan.svg", "folder.svg"])
def test_what_cannot_be_written(name, tmp_path, monkeypatch, capsys):
    path = file_of(tmp_path)
    (tmp_path / "folder.svg").mkdir()
    monkeypatch.chdir(tmp_path)
    assert cli.main(["memory", str(path), "-o", name]) == 2
    err = capsys.readouterr().err
    assert name in err
    assert "must end in" in err or "cannot write" in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["chain.pte", "folder.svg"]


def test_names_of_banks():
    methods = memory_of(chain())
    text = "\n".join(lines(methods, "chain.pte", {("forward", 1): ("SRAM", 512)}))
    assert "method forward, memory 1 (SRAM)\n  peak               256 bytes of 512" in text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1000, "1000 B"),
        (1536, "1.5 KiB"),
        (5619712, "5.36 MiB"),
        (1023 << 20, "1023 MiB"),
    ],
)
def test_bytes_for_people(count, text):
    assert bytes_text(count) == text


@given(st.floats(1, 1e12), st.booleans())
def test_ticks_are_few_and_within(high, binary):
    found = ticks(high, 12, binary)
    assert 1 <= len(found) <= 14
    assert found[0] == 0
    assert found[-1] <= high
