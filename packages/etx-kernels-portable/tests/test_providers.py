# SPDX-License-Identifier: BSD-3-Clause
"""The suite on another plugin's kernels: right ones pass, wrong ones fail, no others run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from abi import header

TESTS = Path(__file__).parent
SOURCE = """
#include <cmath>
#include <etx/kernel.h>
#include <etx/plugin.h>

namespace other {
using etx::Context, etx::Error, etx::ScalarType, etx::Span, etx::Tensor;

template <float (*F)(float)>
Error each(Context& context, const Tensor& x, Tensor& out) {
  ETX_CHECK(context, x.scalar_type() == ScalarType::Float, NotSupported, "x must be float32");
  ETX_TRY(out.resize(x.sizes()));
  for (int64_t i = 0; i < x.numel(); ++i) {
    out.mutable_data_ptr<float>()[i] = F(x.const_data_ptr<float>()[i]);
  }
  return Error::Ok;
}
float negative(float x) { return -x; }
float nearly_sine(float x) { return x - x * x * x / 6; }
float clipped(float x) { return 3 * std::tanh(x / 3); }

constexpr etx_kernel kRows[] = {
    ETX_KERNEL("aten::neg.out", each<negative>),
    ETX_KERNEL("aten::sin.out", each<nearly_sine>),
    ETX_KERNEL("other::soft_clip.out", each<clipped>),
};
ETX_KERNEL_TABLE(kernels, kRows);
constexpr const etx_kernel_table* kTables[] = {&kernels};
constexpr Span<const etx_kernel_table* const> kTableSpan(kTables);
constexpr Span<const etx_backend* const> kNoBackends;
}  // namespace other

ETX_PLUGIN(other, "other", "1.0", other::kTableSpan, other::kNoBackends)
"""
CASES = """
import torch
from case import F32, Case
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

library = torch.library.Library("other", "DEF")
library.define("soft_clip(Tensor x) -> Tensor")
library.define("soft_clip.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
library.impl("soft_clip", lambda x: 3 * torch.tanh(x / 3), "CPU")


def samples(info, device, dtype, requires_grad, **kwargs):
    for shape in ((), (3,), (2, 0), (2, 5)):
        yield SampleInput(9 * torch.randn(shape, dtype=dtype))


soft_clip = OpInfo("other.soft_clip", op=torch.ops.other.soft_clip,
                   dtypes={F32}, sample_inputs_func=samples)
CASES = [Case("other.soft_clip", dtypes=(F32,), own=soft_clip)]
"""


def test_another_plugin(tmp_path: Path) -> None:
    source, library = tmp_path / "other.cpp", tmp_path / "other.so"
    source.write_text(SOURCE)
    flags = ["-std=c++17", "-shared", "-fPIC", "-fno-exceptions", "-fno-rtti"]
    include = f"-I{header().parent.parent}"
    subprocess.run(["c++", *flags, include, source, "-o", library], check=True)
    names = {"aten::neg.out": "self", "aten::sin.out": "self", "other::soft_clip.out": "x"}
    taken = {name: {"arguments": {of: "float32"}} for name, of in names.items()}
    target = {"name": "other", "operators": taken}
    (tmp_path / "other.json").write_text(json.dumps(target))
    (tmp_path / "other_cases.py").write_text(CASES)
    options = ["--plugin", library, "--target", tmp_path / "other.json"]
    options += ["--cases", tmp_path / "other_cases.py", "-rA", "-p", "no:cacheprovider"]
    command = [sys.executable, "-I", "-m", "pytest", "--import-mode=importlib", "test_ops.py"]
    done = subprocess.run(
        [*command, *options, "-k", "test_matches_eager"], cwd=TESTS, capture_output=True, text=True
    )
    pattern = r"^(PASSED|FAILED|SKIPPED) \S+test_matches_eager\[(\S+)\]"
    assert set(re.findall(pattern, done.stdout, re.MULTILINE)) == {
        ("PASSED", "neg-float32"),
        ("FAILED", "sin-float32"),
        ("PASSED", "other.soft_clip-float32"),
    }, done.stdout + done.stderr
    assert "aten::sin.out(float32" in done.stdout


def test_a_plugin_needs_its_target() -> None:
    command = [sys.executable, "-I", "-m", "pytest", "test_ops.py", "--plugin", "x.so"]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--plugin and --target go together" in done.stderr
