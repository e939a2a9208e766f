# SPDX-License-Identifier: BSD-3-Clause
"""What takes the flash and the RAM of an image, from the linker's map and the model's file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from etx_schema._generated.program import ExecutionPlan, Tensor
from etx_schema.dtypes import tensor_nbytes
from etx_schema.pte_reader import read_pte

from etx_backend_arm.firmware.image import Block, Firmware, Image
from etx_backend_arm.firmware.project import operators_by_source
from etx_backend_arm.firmware.scratch import kernel_temporary

OUTPUT = re.compile(r"^(\.[\w.]+)\s+0x[0-9a-f]+\s+0x[0-9a-f]+", re.MULTILINE)
INPUT = re.compile(r"^ (?:\.[\w.$]+|COMMON)\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S.*)$", re.MULTILINE)
MEMBER = re.compile(r"(\w+)\.a\((.+?)(?:\.cpp)?\.o(?:bj)?\)$")
LIBRARIES = {
    "libetx_core": "runtime",
    "libetx_backend_arm": "kernels",
    "libetx_kernels_portable": "kernels",
}
IN_FLASH = (".text", ".ARM.exidx", ".data")
IN_RAM = (".data", ".bss")
MOST_WEIGHTS = 12
"""Weights with a row of their own, the largest."""

Rows = list[tuple[str, int, int]]
"""Name, bytes of flash, bytes of RAM."""


def size_table(map_file: Path, firmware: Firmware) -> str:
    """Return flash and RAM by kernel, part of the runtime, and weight: a line each, then the sum.

    A kernel's RAM is its scratch, which lies in an arena or in temporary memory.
    """
    parts = _parts(map_file.read_text(encoding="utf-8"))
    operators = operators_by_source(map_file.parent.parent, firmware)
    image, scratch = firmware.image, Counter[str]()
    weights: dict[Path, dict[int, tuple[str, int]]] = {}
    for model in image.models:
        plan = next(
            p for p in read_pte(model.file).program.execution_plan if p.name == model.method
        )
        scratch |= Counter(kernel_temporary(plan))
        weights[model.file] = weights.get(model.file, {}) | _weights(plan)
    several = len(image.files()) > 1
    rows = [*_code(parts, operators, scratch)]
    for file, sizes in weights.items():
        rows += _ordered(sizes, file.stat().st_size, f"{file.name}: " if several else "")
    own = [(f"{block}{_whose(image, block)}", 0, block.size) for block in image.blocks()]
    own += [
        (f"method arena{f' of {m.name}' if len(image.models) > 1 else ''}", 0, m.needs.method)
        for m in image.models
    ]
    own += [("stack", 0, image.stack)]
    flash = sum(row[1] for row in rows)
    ram = sum(size for (_, section), size in parts.items() if section in IN_RAM) + image.ram()
    lines = [f"{'flash':>10} {'RAM':>9}  part"]
    lines += [f"{each[1]:>10,} {each[2]:>9,}  {each[0]}" for each in (*rows, *own)]
    return "\n".join([*lines, f"{flash:>10,} {ram:>9,}  together (scratch lies in the arenas)", ""])


def _parts(text: str) -> Counter[tuple[str, str]]:
    """Return the bytes of each part in each section of the image."""
    body = text[text.index("Linker script and memory map") :]
    places = [(m.start(), m[1]) for m in OUTPUT.finditer(body)]
    found: Counter[tuple[str, str]] = Counter()
    for begin, end in zip(places, [*places[1:], (len(body), "")], strict=True):
        for match in INPUT.finditer(body, begin[0], end[0]):
            found[_part(match[2]), begin[1]] += int(match[1], 16)
    return found


def _part(path: str) -> str:
    """Return what an object file is a part of."""
    member = MEMBER.search(path)
    if member is None:
        return "main and board"
    library = LIBRARIES.get(member[1])
    return f"{library}: {member[2]}" if library else "C library"


def _code(
    parts: Counter[tuple[str, str]], operators: Mapping[str, list[str]], scratch: Mapping[str, int]
) -> Iterator[tuple[str, int, int]]:
    flash: Counter[str] = Counter()
    ram: Counter[str] = Counter()
    for (part, section), size in parts.items():
        flash[part] += size if section in IN_FLASH else 0
        ram[part] += size if section in IN_RAM else 0
    for part, size in sorted(flash.items(), key=lambda item: (item[0].partition(":")[0], -item[1])):
        names = operators.get(part.partition(": ")[2], []) if part.startswith("kernels") else []
        used = ram[part] + max((scratch.get(name, 0) for name in names), default=0)
        if size or used:
            yield part + (f" ({', '.join(names)})" if names else ""), size, used


def _whose(image: Image, block: Block) -> str:
    return f" of {', '.join(block.models)}" if len(image.models) > 1 else ""


def _weights(plan: ExecutionPlan) -> dict[int, tuple[str, int]]:
    """Return name and bytes of a method's weights by their place in the file."""
    sizes = {}
    for i, value in enumerate(plan.values):
        tensor = value.val
        if isinstance(tensor, Tensor) and tensor.data_buffer_idx and not tensor.allocation_info:
            extra = tensor.extra_tensor_info
            name = (extra.fully_qualified_name if extra is not None else None) or f"%{i}"
            sizes[tensor.data_buffer_idx] = (name, tensor_nbytes(tensor))
    return sizes


def _ordered(sizes: Mapping[int, tuple[str, int]], whole: int, prefix: str) -> Rows:
    """Return the largest weights of a file of `whole` bytes, the others, and its rest."""
    ordered = sorted(sizes.values(), key=lambda item: -item[1])
    rows = [(f"{prefix}weights: {name}", size, 0) for name, size in ordered[:MOST_WEIGHTS]]
    if rest := ordered[MOST_WEIGHTS:]:
        others = f"{prefix}weights: {len(rest)} others"
        rows.append((others, sum(size for _, size in rest), 0))
    graph = whole - sum(size for _, size in ordered)
    return [*rows, (f"{prefix}model: graph, names, padding", graph, 0)]
