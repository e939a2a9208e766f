# SPDX-License-Identifier: BSD-3-Clause
"""A board records what it does, and runs the test cases of a bundled program."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Model
from etx_devtools.bundled_program import (
    BundledProgram,
    MethodTestCase,
    MethodTestSuite,
    Verdict,
    verify,
)
from etx_devtools.bundled_program.tensors import to_table
from etx_devtools.etdump import Run, Statistics, read_etdump, to_python
from etx_devtools.inspector import Inspector, TimeScale
from etx_devtools.profile import profile_of
from etx_exir import to_edge
from etx_schema import read_pte, serialize_bundle
from machines import Machine
from test_machines import start


def inputs_of(model: Model, call: int) -> tuple[str, ...]:
    shape = ",".join(map(str, model.inputs[call].shape))
    return ("--input", f"x{call}.bin", "--shape", shape)


def record(etx_run: tuple[Machine, Path], model: Model, *options: str) -> tuple[list[Run], Path]:
    dump = model.folder / f"{etx_run[0].name}.etdp"
    outputs = ("--output", f"{etx_run[0].name}-")
    arguments = ("net.pte", *inputs_of(model, 0), *outputs, "--etdump", dump.name, *options)
    done = start(etx_run, model, *arguments, "--iterations", "2")
    assert done.returncode == 0, done.stdout
    return read_etdump(dump), dump


def hash_of(data: bytes) -> int:
    found = 0
    for byte in data:
        found = (found * 0x9E3779B97F4A7C15 + byte + 1) % 2**64
    return found


def test_a_board_records(etx_run: tuple[Machine, Path], model: Model) -> None:
    """Times in ticks, on a board those of the processor, and a summary of each result."""
    runs, dump = record(etx_run, model, "--values", "stats")
    assert [(run.name, run.method) for run in runs] == [
        ("Default", "forward"),
        *[("Execute", "forward")] * 2,
    ]
    pte = read_pte(model.folder / "net.pte")
    for run in runs[1:]:
        calls = [span for span in run.spans if span.name.endswith("_CALL")]
        (whole,) = (span for span in run.spans if span.name == "Method::execute")
        assert sum(span.ticks for span in calls) <= whole.ticks
        assert [one.start >= other.start for one, other in zip(calls[1:], calls, strict=False)]
        assert run.missing_events == 0
        output = run.seen[-1].read(None)
        content = (model.folder / f"{etx_run[0].name}-0.bin").read_bytes()
        numbers = np.frombuffer(content, np.float32)
        assert isinstance(output, Statistics)
        assert (output.dtype, output.shape) == ("float32", model.outputs[0].shape)
        assert (output.nan, output.infinite) == (0, 0)
        assert (output.min, output.max) == (numbers.min(), numbers.max())
        assert output.mean == pytest.approx(float(numbers.mean(dtype=np.float64)), rel=1e-12)
        assert output.hash == hash_of(content)
    scales = {"source_time_scale": TimeScale.CYCLES, "target_time_scale": TimeScale.CYCLES}
    inspector = Inspector(dump, program=model.folder / "net.pte", **scales)
    (block,) = (each for each in inspector.event_blocks if each.name == "Execute")
    (whole,) = (each for each in block.events if each.name == "Method::execute")
    assert whole.perf_data is not None
    ticks = [span.ticks for run in runs[1:] for span in run.spans if span.name == whole.name]
    assert whole.perf_data.raw == ticks
    profile = profile_of(pte, runs, tick_ms=1e-6 if etx_run[0].board is None else 31.25e-6)
    slow = {step.name for step in profile.steps if step.ms[-1] > 0}
    if etx_run[0].board is not None:
        assert slow >= {"aten::convolution.out", "aten::linear.out"}


def test_values_and_what_does_not_fit(etx_run: tuple[Machine, Path], model: Model) -> None:
    runs, path = record(etx_run, model, "--values", "all", "--value-bytes", "65536")
    buffer = Path(f"{path}.bin").read_bytes()
    values = [to_python(seen.value, buffer) for seen in runs[-1].seen]
    np.testing.assert_allclose(values[-1], model.outputs[0], rtol=1e-5, atol=1e-6)
    assert any(np.shape(value) == (3, 4, 8, 8) for value in values)
    runs, _ = record(etx_run, model, "--trace-bytes", "1300")
    assert sum(run.missing_events for run in runs) > 0


@pytest.fixture(scope="module")
def bundle(model: Model) -> Path:
    """Two cases, the second of which expects an element that is 0.5 off."""
    inputs = [torch.from_numpy(x) for x in model.inputs]
    outputs = [torch.from_numpy(y.copy()) for y in model.outputs]
    path = model.folder / "net.bpte"
    for name in ("net.bpte", "wrong.bpte"):
        cases = [MethodTestCase([x], [y]) for x, y in zip(inputs, outputs, strict=True)]
        suites = [MethodTestSuite("forward", cases)]
        BundledProgram(str(model.folder / "net.pte"), suites).save(model.folder / name)
        outputs[1][1, 3] += 0.5
    content = path.read_bytes()
    (model.folder / "cut.bpte").write_bytes(content[: len(content) - 100])
    return path


def test_the_cases_of_a_bundle(etx_run: tuple[Machine, Path], model: Model, bundle: Path) -> None:
    done = start(etx_run, model, bundle.name)
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("all outputs are as expected\n")
    found = re.findall(
        r"^(\w+), case (\d), output 0: (\w+), 0 off, max abs (\S+),", done.stdout, re.M
    )
    assert [row[:3] for row in found] == [("forward", "0", "passed"), ("forward", "1", "passed")]
    assert all(float(row[3]) < 1e-5 for row in found)


def test_a_wrong_case(etx_run: tuple[Machine, Path], model: Model, bundle: Path) -> None:
    """What the board says is what `etx verify` says on the host."""
    done = start(etx_run, model, "wrong.bpte")
    assert done.returncode == 1, done.stdout
    assert done.stdout.endswith("not as expected\n")
    pattern = r"output 0: FAILED, 1 off, max abs (\S+), max rel (\S+) at 8: (\S+), expected (\S+)$"
    found = re.search(pattern, done.stdout, re.M)
    assert found, done.stdout
    (verdict,) = (v for v in verify(bundle.with_name("wrong.bpte")) if not v.passed)
    assert (verdict.case, verdict.output, verdict.at) == (1, 0, (1, 3))
    for text, number in zip(
        found.groups(),
        (verdict.max_abs, verdict.max_rel, verdict.got, verdict.expected),
        strict=True,
    ):
        assert float(text) == pytest.approx(number, rel=1e-3)
    assert start(etx_run, model, "wrong.bpte", "--atol", "0.51").returncode == 0
    assert start(etx_run, model, "wrong.bpte", "--atol", "x").returncode == 2


class Copies(torch.nn.Module):
    def forward(self, *given: torch.Tensor) -> list[torch.Tensor]:
        return [each.clone() for each in given]


def given_of(dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Return a tensor in channels-last order with all numbers that its bits can be."""
    generator = torch.Generator().manual_seed(seed)
    shape = (2, 3, 4, 5)
    if dtype == torch.bool:
        flat = torch.randint(0, 2, shape, generator=generator).bool()
    else:
        size = (*shape, dtype.itemsize)
        flat = torch.randint(0, 256, size, generator=generator, dtype=torch.uint8).view(dtype)
        flat = flat.reshape(shape)
    return flat.to(memory_format=torch.channels_last)


JUDGED = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.bool),
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float64),
)


def judged(folder: Path) -> list[Verdict]:
    """Write a bundle of all dtypes with expected values in other dim orders; return verdicts."""
    inputs = [given_of(dtype, 2 * i) for i, dtype in enumerate(JUDGED)]
    expected = [x.clone() for x in inputs]
    for i, dtype in enumerate(JUDGED):
        expected[i][1, 2, 1:] = given_of(dtype, 2 * i + 1)[1, 2, 1:]
    program = to_edge(torch.export.export(Copies(), tuple(inputs))).to_executorch()
    cases = [MethodTestCase(inputs, expected), MethodTestCase(inputs, inputs)]
    bundle = BundledProgram(program, [MethodTestSuite("forward", cases)]).serialize_to_schema()
    for case, values in zip(
        bundle.method_test_suites[0].test_cases, (expected, inputs), strict=True
    ):
        for i, value in enumerate(values):
            order = [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2)][i % 3]
            case.expected_outputs[i].val = to_table(value, order)
    (folder / "judged.bpte").write_bytes(serialize_bundle(bundle))
    return verify(folder / "judged.bpte")


LINE = re.compile(
    r"^forward, case (\d), output (\d+): (\w+), (\d+) off, max abs (\S+), max rel (\S+) at (\d+): "
    r"(\S+)(?: and (\S+)i)?, expected (\S+?)(?: and (\S+)i)?$",
    re.M,
)


def test_one_judge_here_and_there(etx_run: tuple[Machine, Path], model: Model) -> None:
    """All dtypes, each side in a dim order of its own: the host's figures are the board's."""
    verdicts = judged(model.folder)
    done = start(etx_run, model, "judged.bpte")
    assert done.returncode == 1, done.stdout
    found = LINE.findall(done.stdout)
    assert len(found) == len(verdicts) == 2 * len(JUDGED), done.stdout
    for verdict, (case, output, word, off, *numbers, got, got_i, expected, expected_i) in zip(
        verdicts, found, strict=True
    ):
        assert (verdict.case, verdict.output) == (int(case), int(output))
        assert word == ("passed" if verdict.passed else "FAILED")
        assert int(off) == (0 if verdict.passed else int(verdict.reason.split()[0]))
        assert int(numbers.pop()) == np.ravel_multi_index(verdict.at, (2, 3, 4, 5))
        here = (verdict.max_abs, verdict.max_rel, verdict.got, verdict.expected)
        there = [*map(float, numbers), number_of(got, got_i), number_of(expected, expected_i)]
        for one, other in zip(here, there, strict=True):
            assert one is not None
            assert other == pytest.approx(one, rel=1e-3, nan_ok=True)


def number_of(real: str, imaginary: str) -> complex:
    return complex(float(real), float(imaginary)) if imaginary else float(real)


def test_damaged_bundles(etx_run: tuple[Machine, Path], model: Model, bundle: Path) -> None:
    """None of them ends but with a message; on the host all lengths and many bytes are tried."""
    content = bundle.read_bytes()
    damaged = [content[: len(content) // 2], content[:-100]]
    if etx_run[0].name == "host":
        damaged += [content[:size] for size in range(8, len(content), 199)]
        random = np.random.default_rng(0)
        for _ in range(60):
            changed = bytearray(content)
            place = int(random.integers(8, len(content)) // 4 * 4)
            changed[place : place + 4] = struct.pack("<I", int(random.integers(0, 2**32)))
            damaged.append(bytes(changed))
    for number, data in enumerate(damaged):
        (model.folder / "damaged.bpte").write_bytes(data)
        done = start(etx_run, model, "damaged.bpte")
        assert done.returncode in ((1,) if number < 2 else (0, 1)), (number, done.stdout)
