# SPDX-License-Identifier: BSD-3-Clause
"""What a load asks of the delegate comes before the environment; what it does not know is said."""

from __future__ import annotations

from typing import Any

import etx_runtime
import pytest
import torch
from test_weight_cache import SIDE, files, linear, weights, write_old

X = torch.eye(SIDE)[:1]


def load(path: Any, **options: Any) -> etx_runtime.Model:
    return etx_runtime.load(path, outputs="torch", backend_options={"XnnpackBackend": options})


def test_a_folder_for_packed_weights(tmp_path, monkeypatch):
    program = write_old(tmp_path / "a.pte", linear(0))
    asked, other = tmp_path / "asked", tmp_path / "other"
    monkeypatch.setenv("ETX_XNNPACK_WEIGHT_CACHE", str(other))
    for model in (
        load(program, packed_cache_path=asked),
        load(program, packed_cache_path=str(asked), weight_cache_verify=True),
    ):
        torch.testing.assert_close(model(X), weights(0)[:, 0][None])
    assert len(files(asked)) == 1
    assert files(other) == []
    load(program, weight_cache_enabled=False)
    assert files(other) == []
    load(program, weight_cache_limit=0)
    assert files(other) == []
    load(program)
    assert len(files(other)) == 1


@pytest.mark.parametrize("mode", [0, 1, 2, "delegate", "method", "process"])
def test_modes_of_the_workspace(mode):
    model = load(linear(0), workspace_sharing_mode=mode)
    torch.testing.assert_close(model(X), weights(0)[:, 0][None])


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("workspace", 1, "there is no option 'workspace'; expected workspace_sharing_mode, "),
        ("workspace_sharing_mode", 3, "is 3, expected 0 or 'delegate', 1 or 'method', 2 or "),
        ("workspace_sharing_mode", True, "is True, expected 0 or 'delegate'"),
        ("workspace_sharing_mode", "all", "is 'all', expected 0 or 'delegate'"),
        ("weight_cache_enabled", 1, "is 1, expected a bool"),
        ("weight_cache_verify", "yes", "is 'yes', expected a bool"),
        ("weight_panels", 1, "is 1, expected a bool"),
        ("packed_cache_path", False, "is False, expected the path of a folder"),
        ("packed_cache_path", "", "is '', expected the path of a folder"),
        ("weight_cache_limit", -1, "is -1, expected a number of megabytes"),
        ("weight_cache_limit", 2**62, f"is {2**62}, expected a number of megabytes"),
    ],
)
def test_what_is_refused(key, value, reason):
    with pytest.raises(etx_runtime.LoadError, match="XnnpackBackend") as error:
        load(linear(0), **{key: value})
    assert f"option '{key}' {reason}" in str(error.value) or reason in str(error.value)
