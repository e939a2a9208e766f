# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are special to dtypes or dim orders: of those that fit the most special one runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from conftest import compile_plugin
from etx_runtime import Runtime
from etx_schema.cli import main
from programs import FLOAT, LONG, Builder

SOURCE = """
#include <etx/kernel.h>
#include <etx/plugin.h>

namespace {
using namespace etx;

template <int kNumber>
Error which_out(Context&, const Tensor& x, Tensor& out) {
  ETX_TRY(out.resize(x.sizes()));
  for (int64_t i = 0; i < out.numel(); ++i) {
    if (out.scalar_type() == ScalarType::Float) {
      out.mutable_data_ptr<float>()[i] = kNumber;
    } else {
      out.mutable_data_ptr<int64_t>()[i] = kNumber;
    }
  }
  return Error::Ok;
}
Error other_out(Context&, const Tensor&, int64_t, Tensor&) { return Error::Internal; }
template <int kNumber>
Error many_out(Context&, TensorList, Tensor&) { return Error::Ok; }

constexpr uint64_t kFloat = dtype_bit(ScalarType::Float) | kOnlyDtypes;
constexpr const char* kName = "special::which.out";
constexpr etx_kernel kRows[] = {
    ETX_KERNEL(kName, other_out, kFloat | kOnlyContiguous | kOnlyChannelsLast),
    ETX_KERNEL(kName, which_out<5>, kOnlyChannelsLast),
    ETX_KERNEL(kName, which_out<1>),
    ETX_KERNEL(kName, which_out<2>, kFloat),
    ETX_KERNEL(kName, which_out<3>, kOnlyContiguous),
    ETX_KERNEL(kName, which_out<4>, kFloat | kOnlyContiguous),
    ETX_KERNEL("special::many.out", many_out<1>),
    ETX_KERNEL("special::many.out", many_out<2>, kFloat),
};
constexpr etx_kernel_table kTable = {kRows, sizeof(kRows) / sizeof(kRows[0])};
constexpr const etx_kernel_table* kTables[] = {&kTable};
constexpr Span<const etx_kernel_table* const> kTableSpan(kTables);
constexpr Span<const etx_backend* const> kNoBackends;
}  // namespace

ETX_PLUGIN(special, "special", "1", kTableSpan, kNoBackends)
"""
SIZES = (2, 3, 4, 5)
CONTIGUOUS, CHANNELS_LAST, OTHER = (0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2)
CASES = (
    (FLOAT, CONTIGUOUS, 4, "special: float32, contiguous"),
    (FLOAT, CHANNELS_LAST, 5, "special: channels last"),
    (FLOAT, OTHER, 2, "special: float32"),
    (LONG, CONTIGUOUS, 3, "special: contiguous"),
    (LONG, CHANNELS_LAST, 5, "special: channels last"),
    (LONG, OTHER, 1, "special"),
)


@pytest.fixture(scope="module")
def special(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Runtime:
    folder = tmp_path_factory.mktemp("special")
    (folder / "special.cpp").write_text(SOURCE)
    runtime.load_plugin(compile_plugin(folder / "special.cpp", folder / "libspecial.so"))
    return runtime


@pytest.mark.parametrize(("dtype", "order", "number", "row"), CASES)
def test_the_most_special_row_runs(
    special: Runtime, dtype: es.ScalarType, order: Sequence[int], number: int, row: str
) -> None:
    b = Builder()
    x = b.input(b.tensor(SIZES, dtype, order=order))
    out = b.tensor(SIZES, dtype, order=order)
    b.call("special::which.out", x, out, out)
    b.output(out)
    method = special.load_program(b.serialize()).load_method("forward")
    assert method.kernel_rows() == [row]
    given = np.zeros(SIZES, np.float32 if dtype == FLOAT else np.int64)
    given = given.transpose(order).copy().transpose(np.argsort(order))
    assert (np.asarray(method.execute([given])[0]) == number).all()


@pytest.mark.parametrize("other", [FLOAT, LONG])
def test_tensors_of_lists_count(special: Runtime, other: es.ScalarType) -> None:
    b = Builder()
    x, y = b.input(b.tensor((2,))), b.input(b.tensor((2,), other))
    out = b.tensor((2,))
    b.call("special::many.out", b.value(es.TensorList(items=[x, y])), out, out)
    b.output(out)
    method = special.load_program(b.serialize()).load_method("forward")
    assert method.kernel_rows() == ["special: float32" if other == FLOAT else "special"]


def test_a_function_in_python_comes_first(special: Runtime) -> None:
    def which_out(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = 7

    b = Builder()
    x, out = b.input(b.tensor((2,))), b.tensor((2,))
    b.call("special::which.out", x, out, out)
    b.output(out)
    etx_runtime.register_kernel("special::which.out", which_out)
    try:
        method = special.load_program(b.serialize()).load_method("forward")
        assert method.kernel_rows() == ["Python"]
    finally:
        etx_runtime.unregister("special::which.out")
    assert method.execute([np.zeros(2, np.float32)])[0].tolist() == [7, 7]


def test_show_names_the_row(
    special: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    b = Builder()
    x, out = b.input(b.tensor((2,))), b.tensor((2,))
    b.call("special::which.out", x, out, out)
    b.move(b.int(1), b.int(2))
    b.output(out)
    file = tmp_path / "special.pte"
    file.write_bytes(b.serialize())
    assert main(["show", "--kernels", str(file)]) == 0
    assert "         by special: float32, contiguous\n" in capsys.readouterr().out
    assert main(["show", "--kernels", "--json", str(file)]) == 0
    first, second = json.loads(capsys.readouterr().out)["methods"][0]["instructions"]
    assert first["kernel"] == "special: float32, contiguous"
    assert "kernel" not in second
