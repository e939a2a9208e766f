# SPDX-License-Identifier: BSD-3-Clause
"""What methods do while they load and execute, as an ETDump."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from etx_runtime import _native

Values = Literal["none", "outputs", "all", "stats"]

VALUES: tuple[Values, ...] = ("none", "outputs", "all", "stats")


class Recorder:
    """Records loads and executions, of several methods, too; used by one thread at a time.

    `values` says which results are kept beside times: none, what methods return, or also what
    kernels return and delegates take and return; with "stats", instead of all of these, how many
    elements a tensor has, min, max and mean of the finite ones, how many are NaN and infinite, and
    a hash of its bytes. `instructions` are ranges, the last included, to whose results "all" and
    "stats" are limited; what methods return is kept besides. With `threads` and without values,
    what each thread did of a loop that several ran is recorded, too; ExecuTorch's Inspector then
    shows executions in several blocks. `memory` and `debug_memory` are limits
    in bytes of events and of values; the system hands memory out only as it is written. What does
    not fit is counted.
    """

    def __init__(
        self,
        values: Values = "none",
        *,
        instructions: Sequence[tuple[int, int]] = (),
        threads: bool = False,
        memory: int = 1 << 28,
        debug_memory: int = 1 << 32,
    ) -> None:
        if values not in VALUES:
            raise ValueError(f"values: expected one of {', '.join(VALUES)}, got {values!r}")
        if memory < 0 or debug_memory < 0:
            raise ValueError(f"memory: expected bytes, got {min(memory, debug_memory)}")
        if threads and values != "none":
            raise ValueError(f"threads: expected values='none' beside it, got {values!r}")
        for first, last in instructions:
            if not 0 <= first <= last < 1 << 32:
                raise ValueError(
                    f"instructions: expected first <= last from 0, got ({first}, {last})"
                )
        summarized = values == "stats"
        self.values: Values = values
        debug_memory = 0 if values == "none" or summarized else debug_memory
        which = VALUES.index("all" if summarized else values)
        self.native = _native.Recorder(
            memory, debug_memory, which, summarized, list(instructions), threads
        )

    @staticmethod
    def cost_ns() -> float:
        """Measure what recording an instruction takes on this machine, in nanoseconds.

        The first time in a process takes 20 ms: recorded after it, instructions cost as much.
        """
        return _native.Recorder.cost()

    @staticmethod
    def inner_cost_ns() -> float:
        """Measure what recording an event within a delegate takes, in nanoseconds."""
        return _native.Recorder.inner_cost()

    def etdump(self) -> bytes:
        """Return the dump so far, the content of an ``.etdp`` file."""
        return self.native.etdump()

    def debug_buffer(self) -> bytes:
        """Return the values that the dump refers to."""
        return self.native.debug_buffer()

    def debug_view(self) -> memoryview:
        """Return the values that the dump refers to without copying them: until `clear`."""
        return self.native.debug_view()

    def clear(self) -> None:
        """Forget what was recorded."""
        self.native.clear()

    def save(
        self, path: str | os.PathLike[str], debug_path: str | os.PathLike[str] | None = None
    ) -> None:
        """Write the dump, and its values to `debug_path`; whole files or none."""
        from etx_schema.files import write_atomically

        write_atomically(path, [self.etdump()])
        if debug_path is not None:
            write_atomically(debug_path, [self.debug_buffer()])

    @property
    def missing_events(self) -> int:
        """Events that did not fit into the memory."""
        return self.native.missing_events()

    @property
    def missing_values(self) -> int:
        """Values that did not fit into the debug memory."""
        return self.native.missing_values()

    @property
    def required_bytes(self) -> tuple[int, int]:
        """The least `memory` and `debug_memory` that would have held everything."""
        return self.native.required_bytes(), self.native.required_debug_bytes()
