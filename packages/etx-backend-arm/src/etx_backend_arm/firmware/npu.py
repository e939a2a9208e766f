# SPDX-License-Identifier: BSD-3-Clause
"""What an Ethos-U beside the processor means for a firmware."""

from __future__ import annotations

from etx_schema import ProgramError
from etx_schema._generated.program import DataLocation, ExecutionPlan
from etx_schema.errors import EtxError
from etx_schema.pte import PteFile

from etx_backend_arm.ethos_u.blob import npu_of, read_blob

__all__ = ["BACKEND", "NPUS", "npu_scratch"]

BACKEND = "EthosUBackend"
NPUS = ("ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256", "ethos-u65-256")
"""What the simulator is, which stands for an NPU in QEMU."""


def npu_scratch(pte: PteFile, plan: ExecutionPlan, target: str) -> int:
    """Return the scratch memory, in bytes, of a method's largest delegate; 0 without delegates.

    Errors: EtxError where a delegate is not for the target.
    """
    sizes = [0]
    for delegate in plan.delegates:
        if delegate.id != BACKEND:
            raise EtxError(
                f"{plan.name} calls the backend {delegate.id}, which firmware does not have: "
                f"delegate to {BACKEND}, or export without --backend"
            )
        place = delegate.processed
        assert place is not None
        is_inline = place.location == DataLocation.INLINE
        inline = pte.program.backend_delegate_data
        try:
            blob = read_blob(inline[place.index].data if is_inline else pte.delegates[place.index])
        except ProgramError as error:
            raise EtxError(f"{plan.name}: {error}") from error
        meant, npu = npu_of(blob.commands), target.partition("+")[2]
        if npu == "" or meant not in (None, npu):
            raise EtxError(
                f"{plan.name} holds commands for {meant or 'an Ethos-U'}, and the target is "
                f"{target}: give --target {target.partition('+')[0]}+{meant or NPUS[2]}"
            )
        sizes.append(blob.scratch_size)
    return max(sizes)
