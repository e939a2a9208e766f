# SPDX-License-Identifier: BSD-3-Clause
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

from promise import SEED


def pytest_report_header():
    return f"samples and graphs drawn by ETX_SEED={SEED}"


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
