# SPDX-License-Identifier: BSD-3-Clause
"""Algorithms over specs: ETX's own, and those of users, which ETX calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import etx_exir.plan
import torch
from etx_exir.errors import ConfigError, PlanError
from etx_exir.plan import Block
from etx_exir.plan.blocks import align, make_blocks
from etx_exir.plan.liveness import Part

from etx_executorch.adapters.specs import TensorSpec

__all__ = [
    "BASES",
    "FIRST",
    "MemoryAlgoResult",
    "MemoryPlanningAlgorithmSuite",
    "SpecAllocResult",
    "bases_of",
    "block_algorithm",
    "extend_lifetimes",
    "greedy",
    "naive",
]

BASES = "input_mem_buffer_sizes"
FIRST = 1


@dataclass
class SpecAllocResult:
    """Where a spec lies; specs of one `mem_obj_id` share their memory."""

    mem_id: int
    mem_obj_id: int
    mem_offset: int


@dataclass
class MemoryAlgoResult:
    """Where specs lie, and the bytes of each memory, by id."""

    spec_dict: dict[TensorSpec, SpecAllocResult] = field(default_factory=dict)
    bufsizes: list[int] = field(default_factory=list)


def bases_of(graph_module: Any) -> list[int]:
    """Return the bytes of each memory that nested graphs take before this one's."""
    return list(getattr(graph_module, BASES, None) or (0, 0))


def extend_lifetimes(specs: Iterable[TensorSpec]) -> None:
    """Let what holds others live as long as they do."""
    for spec in specs:
        base = spec.storage_base
        while base is not None:
            pairs = [each for each in (base.lifetime, spec.lifetime) if None not in each]
            if pairs:
                base.lifetime = [min(a for a, _ in pairs), max(b for _, b in pairs)]
            base = base.storage_base


class _Algorithm:
    """One of ETX's algorithms, called with specs."""

    def __init__(self, name: str, place: etx_exir.plan.Algorithm) -> None:
        self.__name__, self.place = name, place

    def __call__(
        self,
        alignment: int,
        specs: Iterable[TensorSpec],
        graph_module: Any = None,
        graph_signature: Any = None,
        extra_padding: int = 0,
    ) -> MemoryAlgoResult:
        """Place specs, those of each memory id apart."""
        specs = sorted(specs, key=_rank)
        extend_lifetimes(specs)
        owners = list(dict.fromkeys(spec.root()[0] for spec in specs))
        sizes = bases_of(graph_module)
        found = MemoryAlgoResult()
        for mem_id in sorted({spec.mem_id or FIRST for spec in owners}):
            sizes += [0] * (mem_id + 1 - len(sizes))
            base = align(sizes[mem_id], alignment)
            chosen = [spec for spec in owners if (spec.mem_id or FIRST) == mem_id]
            blocks, _ = make_blocks([[_part(spec, alignment, extra_padding)] for spec in chosen])
            for spec, offset, block in zip(chosen, self.place(blocks), blocks, strict=True):
                number = len(found.spec_dict)
                found.spec_dict[spec] = SpecAllocResult(mem_id, number, base + offset)
                sizes[mem_id] = max(sizes[mem_id], base + offset + block.size)
        for spec in specs:
            owner, inner = spec.root()
            place = found.spec_dict[owner]
            found.spec_dict[spec] = SpecAllocResult(
                place.mem_id, place.mem_obj_id, place.mem_offset + inner
            )
        found.bufsizes = sizes
        return found


def _rank(spec: TensorSpec) -> tuple[int, ...]:
    first, last = spec.lifetime
    return (first or 0, last or 0, -spec.nbytes())


def _part(spec: TensorSpec, alignment: int, padding: int) -> Part:
    first, last = spec.lifetime
    if first is None:
        raise PlanError(f"{spec!r} has no lifetime: call update_all_tensors_lifetime first")
    return Part(0, align(spec.nbytes() + padding, alignment), (1 << last + 1) - (1 << first))


greedy = _Algorithm("greedy", etx_exir.plan.greedy)
naive = _Algorithm("naive", etx_exir.plan.naive)


class MemoryPlanningAlgorithmSuite:
    """Runs its algorithms, keeps the result that needs the least, and writes it into the specs."""

    def __init__(self, algo_list: Sequence[Any] | None = None) -> None:
        self.algo_list = list(algo_list or (greedy,))

    def __call__(self, alignment: int, specs: Iterable[TensorSpec], *graph: Any) -> list[int]:
        """Return the bytes of each memory, by id; the algorithms are told of the graph."""
        specs = dict.fromkeys(specs).keys()
        for spec in specs:
            spec.realign(alignment)
        results = [algorithm(alignment, specs, *graph) for algorithm in self.algo_list]
        best = min(results, key=lambda result: sum(result.bufsizes))
        for spec in specs:
            place = best.spec_dict[spec]
            spec.mem_id, spec.mem_obj_id = place.mem_id, place.mem_obj_id
            spec.mem_offset = place.mem_offset
        return list(best.bufsizes)


def block_algorithm(
    algorithm: Any, graph_module: Any, signature: Any, alignment: int
) -> etx_exir.plan.Algorithm | None:
    """Return an algorithm for ETX's blocks, which a user's sees as specs of bytes."""
    if algorithm is None or isinstance(algorithm, _Algorithm):
        return None if algorithm is None else algorithm.place
    if isinstance(algorithm, MemoryPlanningAlgorithmSuite):
        if all(isinstance(each, _Algorithm) for each in algorithm.algo_list):
            return etx_exir.plan.MemoryPlanningAlgorithmSuite(
                [each.place for each in algorithm.algo_list]
            )
    elif not callable(algorithm):
        raise ConfigError(f"memory_planning_algo: {type(algorithm).__name__} is not a function")

    def place(blocks: Sequence[Block]) -> list[int]:
        specs = [_spec(block) for block in blocks]
        asked = (dict.fromkeys(specs).keys(), graph_module, signature, 0)
        result = algorithm(alignment, *asked)
        if isinstance(result, MemoryAlgoResult):
            return [result.spec_dict[spec].mem_offset for spec in specs]
        return [-1 if spec.mem_offset is None else spec.mem_offset for spec in specs]

    named: Callable[[Sequence[Block]], list[int]] = place
    named.__name__ = getattr(algorithm, "__name__", type(algorithm).__name__)
    return named


def _spec(block: Block) -> TensorSpec:
    spec = TensorSpec(torch.uint8, [block.size])
    spec.lifetime = [block.first, block.last]
    spec.mem_id = FIRST
    return spec
