# SPDX-License-Identifier: BSD-3-Clause
"""One method: its graph as steps over values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from etx_schema import (
    BackendDelegate,
    ContainerMetadata,
    Instruction,
    KernelCall,
    Tensor,
    TensorShapeDynamism,
)
from etx_schema import ScalarType as WireType
from etx_schema.targets.rows import Row, in_place
from torch.export import ExportedProgram
from torch.fx import Node

from etx_exir.emit.gaps import Gaps
from etx_exir.emit.values import Values
from etx_exir.errors import EmitError, UnboundedError, where
from etx_exir.ir.constraints import ranges_of
from etx_exir.ir.dim_order import FILE_NAMESPACE
from etx_exir.ir.layout import SCALAR_TYPES, Bounds, Shape, shape_of
from etx_exir.ir.pools import Pools
from etx_exir.ir.stand_in import called
from etx_exir.plan import MemoryPlanningPass
from etx_exir.plan.coalesce import OVERWRITING
from etx_exir.plan.linear_ir import Kind, Listing, Place, Step, Storage

Reference = Any
ABSENT = torch.empty(0, device="meta")
"""Stands for a result that is not there."""


class MethodEmitter:
    """The state of emitting one method; modules of this folder fill it."""

    def __init__(
        self,
        name: str,
        program: ExportedProgram | None,
        pools: Pools,
        options: MemoryPlanningPass | None = None,
        gaps: Gaps | None = None,
        kernels: Mapping[str, Row] | None = None,
    ) -> None:
        self.name = name
        self._program = program
        self.options = options or MemoryPlanningPass()
        self.pools = pools
        self.kernels = kernels or {}
        self.constant_names: dict[int, str] = {}
        self.values = Values()
        self.listing = Listing(name, values=self.values.items)
        self.bounds = Bounds(ranges_of(program) if program is not None else {})
        self.delegates: list[BackendDelegate] = []
        self.lowered: list[Any] = []
        self.gaps = Gaps() if gaps is None else gaps
        self.container = ContainerMetadata(encoded_inp_str="", encoded_out_str="")
        self.environment: dict[Node, Reference] = {}
        self.shapes: dict[int, Shape] = {}
        self.fakes: dict[int, torch.Tensor] = {}
        self.current: Node | None = None
        self.copies_views = False

    @property
    def program(self) -> ExportedProgram:
        """Return the exported program of the method."""
        if self._program is None:
            raise EmitError(f"method {self.name!r} is constant and has no program")
        return self._program

    def where(self, node: Node | None = None) -> str:
        """Return the start of an error message: what is being emitted, and its line."""
        node = node or self.current
        if node is None:
            return f"method {self.name!r}"
        what = f"{called(node)}, " if node.op == "call_function" else ""
        return f"method {self.name!r}, {what}{where(node)}"

    def note(self, error: EmitError) -> None:
        """Keep what is wrong with the current node, to be raised with all else that is."""
        self.gaps.note(error, self.name, self.current, self.where())

    def may_overwrite(self, op: str) -> bool:
        """Whether the target lets the result of `op` lie on an argument that is like it."""
        return in_place(self.kernels.get(op, {})) or OVERWRITING.get(op) in self.kernels

    def lookup(self, node: Node) -> int:
        """Return the value index of `node`."""
        reference = self.environment[node]
        if not isinstance(reference, int):
            raise EmitError(f"{self.where()}: {node} stands for several values")
        return reference

    def tensor(
        self,
        fake: torch.Tensor,
        storage: Storage | None,
        offset: int = 0,
        order: tuple[int, ...] | None = None,
    ) -> int:
        """Add a tensor value in `storage`; None leaves it without memory of its own."""
        shape = shape_of(fake, self.bounds, self.where)
        if order is not None:
            shape = replace(shape, dim_order=order)
        if fake.dtype not in SCALAR_TYPES:
            raise EmitError(f"{self.where()}: tensors of {fake.dtype} cannot be stored in a file")
        dynamism = TensorShapeDynamism.STATIC
        if shape.dynamic:
            dynamism = TensorShapeDynamism.DYNAMIC_BOUND
        index = self.values.add(
            Tensor(
                scalar_type=WireType(SCALAR_TYPES[fake.dtype]),
                sizes=list(shape.sizes),
                dim_order=list(shape.dim_order),
                data_buffer_idx=storage.data_buffer_idx if storage is not None else 0,
                shape_dynamism=dynamism,
            )
        )
        self.shapes[index] = shape
        self.fakes[index] = fake
        if self.current is not None:
            self.listing.nodes[index] = self.current
        if storage is not None:
            self.listing.places[index] = Place(storage, offset, shape.nbytes)
        return index

    def fresh(self, fake: torch.Tensor, order: tuple[int, ...] | None = None) -> int:
        """Add a tensor with planned memory of its own."""
        nbytes = shape_of(fake, self.bounds, self.where).nbytes
        return self.tensor(fake, Storage(nbytes), order=order)

    def stand_in(self, fake: torch.Tensor) -> int:
        """Add a tensor for a result that cannot be computed: like `fake` as far as it can be."""
        while True:
            try:
                return self.fresh(fake)
            except UnboundedError as error:
                self.note(error)
            except EmitError:
                index = self.fresh(ABSENT)
                self.gaps.stand_ins.add((self.name, index))
                return index

    def constant(self, data: torch.Tensor, fake: torch.Tensor | None = None) -> int:
        """Add a constant tensor."""
        storage = Storage(
            data.nbytes, Kind.CONSTANT, data_buffer_idx=self.pools.constants.add(data)
        )
        return self.tensor(data if fake is None else fake, storage)

    def call(
        self,
        name: str,
        overload: str,
        args: Sequence[int],
        reads: Sequence[int],
        writes: Sequence[int] = (),
        updates: Sequence[int] = (),
    ) -> Step:
        """Append a kernel call."""
        index = self.listing.operator(name, overload)
        key = f"{name}.{overload}" if overload else name
        call = KernelCall(op_index=index, args=list(args))
        return self.step(Instruction(instr_args=call), key, reads, writes, updates)

    def step(
        self,
        instruction: Instruction,
        op: str,
        reads: Sequence[int] = (),
        writes: Sequence[int] = (),
        updates: Sequence[int] = (),
    ) -> Step:
        """Append a step."""
        step = Step(
            instruction, op, tuple(reads), tuple(writes), tuple(updates), source=self.current
        )
        self.listing.steps.append(step)
        return step

    def clone(self, value: int, out: int | None = None) -> int:
        """Append a copy of a tensor into `out`, in its layout; None makes one like `value`."""
        if out is None:
            out = self.fresh(self.fakes[value], self.shapes[value].dim_order)
        order = self.values.int_list([self.values.integer(d) for d in self.shapes[out].dim_order])
        args = [value, self.values.boolean(False), order, out, out]
        self.call(f"{FILE_NAMESPACE}::_clone_dim_order", "out", args, [value], [out])
        return out
