# SPDX-License-Identifier: BSD-3-Clause
"""Named data of ours as bytes."""

from __future__ import annotations

import json
from typing import Any


def as_json(content: Any) -> bytes:
    """Return `content` as compact JSON with sorted keys."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
