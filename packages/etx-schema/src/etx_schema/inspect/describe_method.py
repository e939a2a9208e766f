# SPDX-License-Identifier: BSD-3-Clause
"""Describe one method: its values by name, its instructions one row each."""

from __future__ import annotations

from typing import Any

from etx_schema._generated.program import (
    Bool,
    BoolList,
    DelegateCall,
    Double,
    DoubleList,
    ExecutionPlan,
    FreeCall,
    Int,
    IntList,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    Null,
    OptionalTensorList,
    String,
    Tensor,
    TensorList,
    TensorShapeDynamism,
)
from etx_schema.dtypes import dtype_name
from etx_schema.inspect.describe_delegate import describe_delegate
from etx_schema.inspect.reads_writes import split_results
from etx_schema.operator_names import operator_name
from etx_schema.problem import CONSTRAINTS_KEY, Origins, read_json
from etx_schema.pte import PteFile


class Method:
    """Names the values of one method and describes it."""

    def __init__(self, pte: PteFile, plan: ExecutionPlan) -> None:
        self.pte = pte
        self.plan = plan
        self.origins = Origins.of(pte.named_data)
        rows = read_json(pte.named_data, CONSTRAINTS_KEY).get(plan.name or "")
        rows = rows.get("inputs") if isinstance(rows, dict) else None
        self.rows = rows if isinstance(rows, list) else []
        self.written = set(self._written())
        self.names = self._names()

    def describe(self) -> dict[str, Any]:
        """Return the document of the method."""
        plan = self.plan
        return {
            "name": plan.name,
            "inputs": [self.input(i, index) for i, index in enumerate(plan.inputs)],
            "outputs": [{"name": self.text(i)} | self.type_of(i) for i in plan.outputs],
            "instructions": self.instructions(),
            "constants": self.constants(),
            "state": self.state(),
            "delegates": [describe_delegate(self.pte, delegate) for delegate in plan.delegates],
            "arenas": plan.non_const_buffer_sizes[1:],
        }

    def _written(self) -> list[int]:
        """Return the scalar slots that instructions write."""
        found = []
        for chain in self.plan.chains:
            for instruction in chain.instructions:
                call = instruction.instr_args
                if isinstance(call, KernelCall) and call.args:
                    found.append(call.args[-1])
                elif isinstance(call, MoveCall):
                    found.append(call.move_to)
        return found

    def _names(self) -> dict[int, str]:
        names: dict[int, str] = {}
        for i, entry in enumerate(self.plan.values):
            value = entry.val
            if isinstance(value, Tensor):
                extra = value.extra_tensor_info
                if extra is not None and extra.fully_qualified_name:
                    names[i] = extra.fully_qualified_name
                elif value.data_buffer_idx and value.allocation_info is None:
                    name = self.origins.constant(self.plan.name or "", value.data_buffer_idx)
                    names[i] = name or f"const{value.data_buffer_idx}"
                elif value.data_buffer_idx:
                    names[i] = f"state{value.data_buffer_idx}"
        for i, index in enumerate(self.plan.inputs):
            row = self.rows[i] if i < len(self.rows) and isinstance(self.rows[i], dict) else {}
            names[index] = str(row.get("name") or f"in{i}")
        return names

    def input(self, i: int, index: int) -> dict[str, Any]:
        """Describe one input; `dims` holds what each dimension may be, None for static ones."""
        entry = {"name": self.names[index]} | self.type_of(index)
        row = self.rows[i] if i < len(self.rows) and isinstance(self.rows[i], dict) else {}
        dims = row.get("dims")
        if isinstance(dims, list) and len(dims) == len(entry.get("sizes", ())):
            entry["dims"] = dims
        if isinstance(row.get("value"), dict):
            entry["value"] = row["value"]
        return entry

    def value(self, index: int) -> Any:
        """Return the value at `index`, None when there is no such one."""
        return self.plan.values[index].val if 0 <= index < len(self.plan.values) else None

    def type_of(self, index: int) -> dict[str, Any]:
        """Describe the type of a value."""
        value = self.value(index)
        if not isinstance(value, Tensor):
            document: dict[str, Any] = {"type": type(value).__name__}
            if index not in self.written and isinstance(value, (Int, Bool, Double, String)):
                document["stored"] = self.text(index, literal=True)
            return document
        return {
            "type": "Tensor",
            "dtype": dtype_name(value.scalar_type),
            "sizes": value.sizes,
            "dim_order": value.dim_order,
            "dynamic": value.shape_dynamism != TensorShapeDynamism.STATIC,
        }

    def text(self, index: int, *, literal: bool = False) -> str:
        """Return how an argument is written: a name, or the literal that the slot holds."""
        value = self.value(index)
        if isinstance(value, Null):
            return "None"
        if isinstance(value, (IntList, TensorList, OptionalTensorList)):
            items = ["None" if i < 0 else self.text(i) for i in value.items]
            return f"[{', '.join(items)}]"
        if isinstance(value, (DoubleList, BoolList)):
            return str(value.items)
        if index in self.names and not literal:
            return self.names[index]
        if index not in self.written or literal:
            if isinstance(value, Int):
                return str(value.int_val)
            if isinstance(value, Bool):
                return str(value.bool_val)
            if isinstance(value, Double):
                return repr(value.double_val)
            if isinstance(value, String):
                return repr(value.string_val)
        return f"%{index}"

    def typed(self, index: int) -> str:
        """Return a result with its type: `%5: float32[2, 3]`."""
        value = self.value(index)
        if isinstance(value, Tensor):
            bound = "<=" if value.shape_dynamism != TensorShapeDynamism.STATIC else ""
            sizes = ", ".join(f"{bound}{size}" for size in value.sizes)
            return f"{self.text(index)}: {dtype_name(value.scalar_type)}[{sizes}]"
        return f"{self.text(index)}: {type(value).__name__.lower()}"

    def instructions(self) -> list[dict[str, Any]]:
        """Describe the instructions, one row each."""
        rows = []
        for chain in self.plan.chains:
            for i, instruction in enumerate(chain.instructions):
                row = {"index": i} | self.instruction(instruction.instr_args)
                rows.append(row | self.origin(i))
        return rows

    def origin(self, i: int) -> dict[str, Any]:
        """Describe where instruction `i` comes from, as far as the file says it."""
        name = self.plan.name or ""
        origin = self.origins.get(name, i)
        row: dict[str, Any] = {k: origin[k] for k in ("module", "source") if k in origin}
        parts = {
            "from": origin.get("op"),
            "handles": self.origins.handles_of(name, i),
            "inner": self.origins.inner(name, i),
            "ids": self.origins.delegated(name, i),
        }
        return row | {key: part for key, part in parts.items() if part}

    def instruction(self, call: object) -> dict[str, Any]:
        """Describe one instruction; `text` is the line that is printed."""
        if isinstance(call, KernelCall):
            op = operator_name(self.plan, call.op_index)
            results, arguments = split_results(self.plan, call.args)
            left = ", ".join(self.typed(i) for i in results)
            inner = ", ".join(self.text(i) for i in arguments)
            text = f"{left} = {op}({inner})"
            return {"kind": "kernel", "op": op, "args": call.args, "text": text}
        if isinstance(call, DelegateCall):
            index = call.delegate_index
            known = 0 <= index < len(self.plan.delegates)
            backend = self.plan.delegates[index].id if known else None
            inner = ", ".join(self.text(i) for i in call.args)
            text = f"delegate {index} {backend}({inner})"
            return {"kind": "delegate", "delegate": index, "args": call.args, "text": text}
        if isinstance(call, MoveCall):
            text = f"{self.text(call.move_to)} = {self.text(call.move_from)}"
            return {"kind": "move", "from": call.move_from, "to": call.move_to, "text": text}
        if isinstance(call, JumpFalseCall):
            target, condition = call.destination_instruction, call.cond_value_index
            text = f"if not {self.text(condition)}: jump to {target}"
            return {"kind": "jump", "condition": condition, "to": target, "text": text}
        if isinstance(call, FreeCall):
            text = f"free {self.text(call.value_index)}"
            return {"kind": "free", "value": call.value_index, "text": text}
        return {"kind": "unknown", "text": "unknown instruction"}

    def constants(self) -> list[dict[str, Any]]:
        """Describe the stored tensors."""
        return [
            {"name": self.names[i], "external": _external(value)} | self.type_of(i)
            for i, value in self._tensors()
            if value.allocation_info is None and (value.data_buffer_idx or _external(value))
        ]

    def state(self) -> list[dict[str, Any]]:
        """Describe the planned tensors with initial values."""
        return [
            {"name": self.names.get(i, f"%{i}")} | self.type_of(i)
            for i, value in self._tensors()
            if value.allocation_info is not None and (value.data_buffer_idx or _external(value))
        ]

    def _tensors(self) -> list[tuple[int, Tensor]]:
        found = [(i, entry.val) for i, entry in enumerate(self.plan.values)]
        return [(i, value) for i, value in found if isinstance(value, Tensor)]


def _external(tensor: Tensor) -> bool:
    return tensor.extra_tensor_info is not None and bool(tensor.extra_tensor_info.location)
