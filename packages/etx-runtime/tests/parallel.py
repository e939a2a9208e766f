# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import threading
from collections.abc import Callable


def run_in_threads(work: Callable[[int], None], count: int = 8) -> None:
    """Call `work` with 0, 1, … at the same time and wait for all."""
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
