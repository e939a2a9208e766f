# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest
import torch
from etx_kernels_aten.errors import TorchVersionError
from etx_kernels_aten.library import check_version, library_path


def test_the_installed_torch_is_the_one(monkeypatch):
    assert library_path().endswith("etx_kernels_aten.so")
    check_version("2.13.9+cpu")


def test_another_minor_version_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.12.1+cpu")
    expected = r"built for torch 2\.13, torch 2\.12\.1\+cpu is installed; install torch 2\.13"
    with pytest.raises(TorchVersionError, match=expected):
        library_path()
