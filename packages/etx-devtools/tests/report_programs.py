# SPDX-License-Identifier: BSD-3-Clause
"""Programs to look at: long ones, and one whose every name is hostile."""

from __future__ import annotations

import json
import zlib

from etx_schema import (
    AllocationDetails,
    BackendDelegate,
    BackendDelegateDataReference,
    BackendDelegateInlineData,
    Chain,
    CompileSpec,
    DataLocation,
    DelegateCall,
    EValue,
    ExecutionPlan,
    ExtraTensorInfo,
    Instruction,
    KernelCall,
    NamedBlob,
    Operator,
    Program,
    PteFile,
    ScalarType,
    String,
    Tensor,
    serialize_pte,
)

HOSTILE = "</script><img src=x onerror=document.title='owned'>\u2028\"'&<!--"


def tensor(offset, **more):
    place = AllocationDetails(memory_id=1, memory_offset_low=offset)
    types = {"scalar_type": ScalarType.FLOAT, "sizes": [4, 4], "dim_order": [0, 1]}
    return EValue(val=Tensor(**types, allocation_info=place, **more))


def chain_of(count, name="", method="forward", delegated=False):
    """Return a program of `count` additions in modules of ten; `name` is in all its strings."""
    values = [tensor(0), tensor(64)]
    instructions, rows = [], []
    for i in range(count):
        values.append(tensor(64 * (i % 3) + 128))
        call = KernelCall(op_index=0, args=[i + 1 if i else 0, 1, i + 2])
        instructions.append(Instruction(instr_args=call))
        place = f"layers{name}.{i // 10}.block"
        rows.append({"op": f"aten.add{name}", "module": place, "source": f"net.py:{i % 50}{name}"})
        rows[-1]["handles"] = [i + 1]
    delegates, inline = [], []
    if delegated:
        extra = ExtraTensorInfo(fully_qualified_name=f"state{name}")
        values += [EValue(val=String(string_val=name)), tensor(320, extra_tensor_info=extra)]
        place = BackendDelegateDataReference(location=DataLocation.INLINE, index=0)
        spec = CompileSpec(key=name, value=name.encode())
        delegates.append(BackendDelegate(id=f"B{name}", processed=place, compile_specs=[spec]))
        inline.append(BackendDelegateInlineData(data=name.encode()))
        instructions.append(Instruction(instr_args=DelegateCall(args=[0, count + 1])))
        rows.append({"module": name, "source": name, "handles": [7]})
    plan = ExecutionPlan(
        name=method,
        values=values,
        inputs=[0, 1],
        outputs=[count + 1],
        chains=[Chain(instructions=instructions)],
        operators=[Operator(name=f"aten::add{name}", overload="out")],
        delegates=delegates,
        non_const_buffer_sizes=[0, 4096],
    )
    inner = {"7": {"module": name, "op": name}}
    debug = json.dumps({method: {"instructions": rows, "handles": inner}}).encode()
    named = {"etx/debug": NamedBlob(debug)} | ({name: NamedBlob(b"1234")} if name else {})
    program = Program(execution_plan=[plan], backend_delegate_data=inline)
    return serialize_pte(PteFile(program, named_data=named))


def hostile():
    """Return a program with a hostile name, 10 kB long in places, wherever a name can be."""
    return chain_of(12, HOSTILE + "x" * 10_000, f"forward{HOSTILE}", delegated=True)


def log_of(blob, name=""):
    """Return a log of the compilation of `chain_of`, with `name` in all its strings."""
    stage = {
        "name": f"decompose{name}",
        "equation": f"f -> g{name}",
        "changed": True,
        "operators": [2, 3],
        "removed": [[f"aten.f{name}", name, name, 1, [1]]],
        "added": [[f"aten.g{name}", name, name, 2, [3]]],
    }
    merge = stage | {"name": f"merge{name}", "operators": [3, 3], "added": stage["removed"]}
    idle = stage | {"name": f"idle{name}", "changed": False, "removed": [], "added": []}
    outside = {
        "operator": f"aten.add{name}",
        "module": f"layers{name}.0.block",
        "source": f"net.py:2{name}",
    }
    reason = {f"Toy{name}": f"it is an addition{name}"}
    left = {"operator": f"aten.g{name}", "by": name, "reason": f"little{name}", "times": 3}
    entry = {
        "stages": [stage, merge, idle],
        "outside": [outside | {"reasons": reason}],
        "declined": [left | {"module": name, "source": name}],
    }
    file = {"bytes": len(blob), "crc32": zlib.crc32(blob)}
    methods = {f"forward{name}": entry}
    return {"format": "etx/stages", "version": 1, "file": file, "methods": methods}
