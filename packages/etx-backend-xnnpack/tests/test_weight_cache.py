# SPDX-License-Identifier: BSD-3-Clause
"""Packed weights are kept as files: used where all they depend on is the same, else refused."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import etx_runtime
import pytest
import torch
from etx_backend_xnnpack._generated import xnnpack as fbs
from evaluate import Evaluation
from graphs import NONE, GraphBuilder

SIDE = 256


def linear(seed: int, side: int = SIDE) -> bytes:
    torch.manual_seed(seed)
    builder = GraphBuilder()
    x, y = builder.input(1, side), builder.output(1, side)
    filter_ = builder.value((side, side), data=torch.randn(side, side))
    payload = fbs.FullyConnected(input1_id=x, filter_id=filter_, bias_id=NONE, output_id=y)
    builder.node("FullyConnected", payload)
    return builder.program()


def weights(seed: int, side: int = SIDE) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.randn(side, side)


def write_old(path: Path, data: bytes) -> Path:
    """Write a file and wait until a later change would show in its times."""
    path.write_bytes(data)
    time.sleep(0.12)
    return path


def run(path: Path, side: int = SIDE) -> torch.Tensor:
    return etx_runtime.load(str(path), outputs="torch")(torch.eye(side)[:1])


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.packed"))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("ETX_XNNPACK_WEIGHT_CACHE", str(folder))
    return folder


@pytest.fixture
def program(tmp_path):
    return write_old(tmp_path / "a.pte", linear(0))


def test_second_load_reads_the_file(cache, program, capfd):
    expected = weights(0)[:, 0][None]
    torch.testing.assert_close(run(program), expected)
    (kept,) = files(cache)
    written = kept.stat().st_mtime_ns, kept.stat().st_ino
    gc.collect()
    torch.testing.assert_close(run(program), expected)
    assert files(cache) == [kept]
    assert (kept.stat().st_mtime_ns, kept.stat().st_ino) == written
    assert kept.stat().st_mode & 0o777 == 0o600
    assert capfd.readouterr().err == ""


def test_the_file_is_what_is_computed_with(cache, program):
    """Weights really come from the file: with the checksum mended, others give other results."""
    expected = run(program)
    gc.collect()
    (kept,) = files(cache)
    times = kept.stat()
    data = bytearray(kept.read_bytes())
    data[4096:-128] = bytes(len(data) - 4096 - 128)
    kept.write_bytes(data)
    os.utime(kept, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not run(program).any()
    assert expected.any()


def test_bytes_are_compared_where_that_is_asked_for(cache, program, capfd, monkeypatch):
    expected = run(program)
    gc.collect()
    (kept,) = files(cache)
    times = kept.stat()
    data = bytearray(kept.read_bytes())
    data[5000] ^= 1
    kept.write_bytes(data)
    os.utime(kept, ns=(times.st_atime_ns, times.st_mtime_ns))
    monkeypatch.setenv("ETX_XNNPACK_WEIGHT_CACHE_VERIFY", "1")
    assert torch.equal(run(program), expected)
    assert "its bytes are damaged; packed again" in capfd.readouterr().err
    assert torch.equal(run(program), expected)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("how", ["in place", "renamed", "same times"])
def test_another_program_has_other_weights(how, cache, program):
    run(program)
    gc.collect()
    before = program.stat()
    if how == "renamed":
        other = program.with_name("b.pte")
        other.write_bytes(linear(1))
        other.replace(program)
    else:
        program.write_bytes(linear(1))
    if how == "same times":
        os.utime(program, ns=(before.st_atime_ns, before.st_mtime_ns))
    time.sleep(0.12)
    torch.testing.assert_close(run(program), weights(1)[:, 0][None])
    assert len(files(cache)) == 2


def test_what_was_written_just_now_is_not_kept(cache, tmp_path, capfd):
    path = tmp_path / "a.pte"
    path.write_bytes(linear(0))
    if time.time_ns() - path.stat().st_ctime_ns < 50_000_000:
        run(path)
        err = capfd.readouterr().err
        assert files(cache) != [] or "a later load will keep its weights" in err
    time.sleep(0.12)
    run(path)
    assert len(files(cache)) == 1


def test_bytes_in_memory_are_not_kept(cache, capfd):
    model = etx_runtime.load(linear(0), outputs="torch")
    torch.testing.assert_close(model(torch.eye(SIDE)[:1]), weights(0)[:, 0][None])
    assert files(cache) == []
    assert "they do not lie in a mapped file" in capfd.readouterr().err


def damage(kind: str, kept: Path) -> str:
    """Change the file and return what is said of it."""
    data = kept.read_bytes()
    if kind == "cut":
        os.truncate(kept, len(data) // 2)
        return "cut or grown"
    if kind == "empty":
        os.truncate(kept, 0)
        return "cut"
    if kind == "grown":
        kept.write_bytes(data + b"x")
        return "cut or grown"
    if kind == "changed":
        kept.write_bytes(data[:9000] + b"x" + data[9001:])
        return "changed since it was written"
    if kind == "foreign":
        kept.write_bytes(b"\x7fELF" + data[4:])
        return "not a file of packed weights"
    if kind == "writable":
        kept.chmod(0o666)
        return "others may write it"
    kept.unlink()
    if kind == "pipe":
        os.mkfifo(kept)
        return "not a file"
    kept.symlink_to("/dev/zero" if kind == "device" else "/etc/passwd")
    return "packed again"


@pytest.mark.parametrize(
    "kind", ["cut", "empty", "grown", "changed", "foreign", "writable", "pipe", "device", "link"]
)
def test_damaged_files_are_packed_again(kind, cache, program, capfd):
    expected = run(program)
    gc.collect()
    (kept,) = files(cache)
    reason = damage(kind, kept)
    assert torch.equal(run(program), expected)
    assert reason in capfd.readouterr().err
    gc.collect()
    assert torch.equal(run(program), expected)
    assert capfd.readouterr().err == ""


def test_any_damage(cache, program, capfd):
    """Bytes of the first page change, the time stays: refused, or a byte that nothing reads."""
    expected = run(program)
    gc.collect()
    (kept,) = files(cache)
    data, times = kept.read_bytes(), kept.stat()
    draw = random.Random(0)
    refused = 0
    for _ in range(20):
        changed = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            changed[draw.randrange(472)] = draw.choice([0, 1, 127, 128, 255, draw.randrange(256)])
        if draw.random() < 0.2:
            del changed[draw.randrange(len(changed)) :]
        kept.write_bytes(changed)
        os.utime(kept, ns=(times.st_atime_ns, times.st_mtime_ns))
        is_same = changed == data
        assert torch.equal(run(program), expected)
        gc.collect()
        err = capfd.readouterr().err
        assert is_same or "packed again" in err
        refused += not is_same
    assert refused > 15


def test_folder_that_cannot_be_used(cache, program, capfd):
    cache.write_text("a file")
    run(program)
    assert "not a folder; not used" in capfd.readouterr().err
    cache.unlink()
    cache.mkdir()
    cache.chmod(0o777)
    run(program)
    assert "others may write it; not used" in capfd.readouterr().err
    assert files(cache) == []


def test_limit(cache, tmp_path, capfd, monkeypatch):
    paths = [write_old(tmp_path / f"{i}.pte", linear(i, 512)) for i in range(3)]
    monkeypatch.setenv("ETX_XNNPACK_WEIGHT_CACHE_LIMIT", "2")
    for i, path in enumerate(paths):
        run(path, 512)
        gc.collect()
        time.sleep(0.02)
        assert len(files(cache)) == 1, i
    assert capfd.readouterr().err == ""
    monkeypatch.setenv("ETX_XNNPACK_WEIGHT_CACHE_LIMIT", "1")
    (kept,) = files(cache)
    run(paths[0], 512)
    assert "full" in capfd.readouterr().err
    assert files(cache) == [kept]
    monkeypatch.setenv("ETX_XNNPACK_WEIGHT_CACHE_LIMIT", "-1")
    with pytest.raises(etx_runtime.LoadError, match="expected a number of megabytes"):
        run(paths[0], 512)


def test_files_in_use_stay(cache, tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("ETX_XNNPACK_WEIGHT_CACHE_LIMIT", "2")
    paths = [write_old(tmp_path / f"{i}.pte", linear(i, 512)) for i in range(2)]
    model = etx_runtime.load(str(paths[0]), outputs="torch")
    x = torch.eye(512)[:1]
    expected = model(x)
    torch.testing.assert_close(run(paths[1], 512), weights(1, 512)[:, 0][None])
    assert "full" in capfd.readouterr().err
    assert len(files(cache)) == 1
    assert torch.equal(model(x), expected)


def test_abandoned_files_go(cache, program):
    cache.mkdir(mode=0o700)
    old, new = cache / "1-1.new", cache / "2-1.new"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    run(program)
    assert not old.exists()
    assert new.exists()


def test_what_a_killed_process_left_is_not_in_the_way(cache, program, capfd):
    """In a container the next process has the same number."""
    cache.mkdir(mode=0o700)
    for i in range(1000):
        (cache / f"{os.getpid()}-{i}.new").write_bytes(b"half")
    run(program)
    assert capfd.readouterr().err == ""
    assert len(files(cache)) == 1


PROCESS = """
import sys, torch, etx_runtime
model = etx_runtime.load(sys.argv[1], outputs="torch")
print(model(torch.eye(256)[:1]).sum().item())
"""


def test_processes_at_once(cache, program):
    command = [sys.executable, "-c", PROCESS, program]
    running = [subprocess.Popen(command, stdout=-1, stderr=-1, text=True) for _ in range(3)]
    ends = [process.communicate() for process in running]
    assert all(process.returncode == 0 for process in running)
    assert len({out for out, _ in ends}) == 1
    assert [err for _, err in ends] == [""] * 3
    assert len(files(cache)) == 1
    assert list(cache.glob("*.new")) == []


def test_threads_at_once(cache, program):
    expected, found = run(program), []
    files(cache)[0].unlink()
    threads = [threading.Thread(target=lambda: found.append(run(program))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(torch.equal(each, expected) for each in found)


def float_conv(g: GraphBuilder) -> None:
    x, y = g.input(1, 6, 6, 64), g.output(1, 6, 6, 64)
    w = g.value((64, 3, 3, 64), data=torch.randn(64, 3, 3, 64))
    window = dict.fromkeys(("kernel_height", "kernel_width"), 3)
    padding = dict.fromkeys(("padding_top", "padding_right", "padding_bottom", "padding_left"), 1)
    strides = dict.fromkeys(
        ("subsampling_height", "subsampling_width", "dilation_height", "dilation_width"), 1
    )
    channels = {"groups": 1, "group_input_channels": 64, "group_output_channels": 64}
    ids = {"input1_id": x, "filter_id": w, "bias_id": NONE, "output_id": y}
    g.node("Conv2d", fbs.Convolution(**ids, **window, **padding, **strides, **channels))


def dynamic_linear(g: GraphBuilder) -> None:
    x, y = g.input(3, 256), g.output(3, 512)
    row = g.value((3, 256), fbs.DataType.QDINT8, fbs.PerRow(num_nonbatch_dims=1))
    numbers = torch.randint(-127, 128, (512, 256), dtype=torch.int8)
    scales = g.per_channel(torch.rand(512) / 50 + 0.001)
    w = g.value((512, 256), fbs.DataType.QCINT8, scales, numbers)
    b = g.value((512,), data=torch.randn(512))
    g.node("Convert", fbs.Unary(input_id=x, output_id=row))
    payload = fbs.FullyConnected(input1_id=row, filter_id=w, bias_id=b, output_id=y)
    g.node("FullyConnected", payload)


def same_filter_two_dynamic_biases(g: GraphBuilder) -> None:
    """XNNPACK does not say which bias it packs: neither is kept as a file."""
    x, outputs = g.input(3, 256), [g.output(3, 512) for _ in range(2)]
    row = g.value((3, 256), fbs.DataType.QDINT8, fbs.PerRow(num_nonbatch_dims=1))
    numbers = torch.randint(-127, 128, (512, 256), dtype=torch.int8)
    w = g.value((512, 256), fbs.DataType.QCINT8, g.per_channel(torch.full((512,), 0.02)), numbers)
    g.node("Convert", fbs.Unary(input_id=x, output_id=row))
    for y in outputs:
        b = g.value((512,), data=torch.randn(512))
        payload = fbs.FullyConnected(input1_id=row, filter_id=w, bias_id=b, output_id=y)
        g.node("FullyConnected", payload)


def same_filter_two_biases(g: GraphBuilder) -> None:
    x, w = g.input(3, 256), g.value((256, 256), data=torch.randn(256, 256))
    for _ in range(2):
        b, y = g.value((256,), data=torch.randn(256)), g.output(3, 256)
        payload = fbs.FullyConnected(input1_id=x, filter_id=w, bias_id=b, output_id=y)
        g.node("FullyConnected", payload)


def same_bytes_two_shapes(g: GraphBuilder) -> None:
    """XNNPACK asks for both with the same words: neither is kept as a file."""
    data, shapes = torch.randn(128, 512), ((128, 512), (512, 128))
    inputs = [g.input(3, columns) for _, columns in shapes]
    for x, (rows, columns) in zip(inputs, shapes, strict=True):
        y = g.output(3, rows)
        w = g.value((rows, columns), data=data.reshape(rows, columns))
        payload = fbs.FullyConnected(input1_id=x, filter_id=w, bias_id=NONE, output_id=y)
        g.node("FullyConnected", payload)


@pytest.mark.parametrize(
    ("build", "count"),
    [
        (float_conv, 1),
        (dynamic_linear, 1),
        (same_filter_two_dynamic_biases, 0),
        (same_filter_two_biases, 2),
        (same_bytes_two_shapes, 0),
    ],
)
def test_kinds_of_weights(build, count, cache, tmp_path, capfd, monkeypatch):
    torch.manual_seed(0)
    builder = GraphBuilder()
    build(builder)
    path = write_old(tmp_path / "a.pte", builder.program())
    evaluation = Evaluation(builder.blob(), builder.named)
    inputs = [torch.randn(evaluation.tensors[i].sizes) for i in evaluation.blob.graph.input_ids]
    expected = evaluation.run(*inputs)
    results = []
    for folder in ("", cache, cache):
        monkeypatch.setenv("ETX_XNNPACK_WEIGHT_CACHE", str(folder))
        model = etx_runtime.load(str(path), outputs="torch")
        found = model(*inputs)
        results.append(found if isinstance(found, tuple) else (found,))
        del model
        gc.collect()
    assert capfd.readouterr().err == ""
    assert len(files(cache)) == count
    for found in results:
        for one, other, first in zip(found, expected, results[0], strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)
            assert torch.equal(one, first)
