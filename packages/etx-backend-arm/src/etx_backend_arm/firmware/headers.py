# SPDX-License-Identifier: BSD-3-Clause
"""The headers of a firmware and the assembly that links its files: each model by its name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from etx_backend_arm.firmware.image import Firmware, Image, Model

HEADER = "etx_firmware.h"
MEMORY_HEADER = "etx_memory.h"
FOLDER = "etx_firmware"
BEGIN = "// Written by etx firmware.\n#pragma once\n"
IMAGE = """\
#include <etx/abi.h>

{includes}
#define ETX_FIRMWARE_MODELS(X) {models}
#define ETX_FIRMWARE_VERIFY {verification}
#define ETX_FIRMWARE_PLUGINS(X) {plugins}
#define ETX_FIRMWARE_REGISTRY {registry}
#define ETX_FIRMWARE_READ(X) {read}
#define ETX_DECLARE_PLUGIN(name) const etx_plugin* etx_plugin_##name(void);
#define ETX_CALL_PLUGIN(name) etx_plugin_##name(),
extern "C" {{
ETX_FIRMWARE_PLUGINS(ETX_DECLARE_PLUGIN)
}}
"""
ARENAS = """\
#include <cstdint>

namespace etx_firmware {{
{arrays}
}}  // namespace etx_firmware
"""
ARRAY = 'alignas({align}) __attribute__((section(".arenas{bank}"))) inline uint8_t {name}[{size}];'
MODEL = """\
#include "../etx_arenas.h"
#include "../etx_memory.h"

extern "C" const uint8_t {file}[], {file}_end[];

namespace etx_firmware::{name} {{
{arrays}
inline constexpr Model kModel = {{
    "{name}", "{method}", {file}, {file}_end,
    {own}, {temporary}, {arenas}, {places}}};
}}  // namespace etx_firmware::{name}
"""
TESTS = """\
#include <etx/span.h>

#include <cstdint>

namespace etx_firmware {{

struct TestTensor {{
  size_t index;
  const uint8_t* begin;
}};

struct Test {{
  etx::Span<const TestTensor> inputs, outputs;
}};

constexpr float kTolerance = {tolerance!r}f;

}}  // namespace etx_firmware
"""


def write_headers(folder: Path, firmware: Firmware, plugins: Sequence[str]) -> None:
    """Write headers, files and tests of all models into `folder`."""
    image = firmware.image
    shutil.copyfile(Path(__file__).parent / MEMORY_HEADER, folder / MEMORY_HEADER)
    text = IMAGE.format(
        includes="".join(f'#include "{FOLDER}/{model.name}.h"\n' for model in image.models),
        models=" ".join(f"X({model.name})" for model in image.models),
        verification=firmware.verification,
        plugins=" ".join(f"X({name})" for name in plugins),
        read=" ".join(f"X({image.name_of(f)})" for f in image.files() if image.is_read),
        registry="etx::Registry" if firmware.target.npu else "etx::Registry::of_kernels",
    )
    _write(folder / HEADER, text)
    arrays = [
        ARRAY.format(
            align=64,
            bank=f".{block.memory_id}" if block.memory_id else "",
            name=block.name,
            size=block.size,
        )
        for block in image.blocks()
    ]
    _write(folder / "etx_arenas.h", ARENAS.format(arrays="\n".join(arrays)))
    (folder / FOLDER).mkdir()
    for model in image.models:
        _write(folder / FOLDER / f"{model.name}.h", _model(image, model))
    if not firmware.is_library:
        tests = "".join(_test(model) for model in image.models)
        _write(folder / "etx_tests.h", TESTS.format(tolerance=firmware.tolerance) + tests)
    _write_blobs(folder / "model", firmware)


def _write(path: Path, text: str) -> None:
    path.write_text(BEGIN + text, encoding="utf-8")


def _file(image: Image, path: Path) -> str:
    """Return the symbol of a file."""
    return f"etx_{image.name_of(path)}"


def _model(image: Image, model: Model) -> str:
    blocks = {b.memory_id: b.name for b in image.blocks() if model.name in b.models}
    needs = model.needs
    arrays = [ARRAY.format(align=16, bank="", name="own", size=needs.method)]
    spans = [
        f"{{{blocks[i]}, {size}}}" if i in blocks else "{}" for i, size in needs.arenas.items()
    ]
    if spans:
        arrays.append(f"inline etx::Span<uint8_t> arenas[] = {{{', '.join(spans)}}};")
    if needs.places:
        rows = ", ".join(f"{{{place.at}, {place.size}}}" for place in needs.places)
        arrays.append(f"inline constexpr Place kPlaces[] = {{{rows}}};")
    return MODEL.format(
        name=model.name,
        method=model.method,
        file=_file(image, model.file),
        arrays="\n".join(arrays),
        own="own",
        temporary=f"{{{blocks[0]}, {needs.temporary}}}" if 0 in blocks else "{}",
        arenas="arenas" if spans else "{}",
        places="kPlaces" if needs.places else "{}",
    )


def _arrays(model: Model) -> Iterator[tuple[str, int, np.ndarray]]:
    """Yield the arrays of a model's test: kind, index, and what it holds."""
    for kind, arrays in (("input", model.case.inputs), ("output", model.case.outputs)):
        for index, array in arrays:
            yield kind, index, array


def _test(model: Model) -> str:
    named = [(kind, i, f"etx_{model.name}_{kind}{i}") for kind, i, _ in _arrays(model)]
    lines = [f'extern "C" const uint8_t {name}[];' for _, _, name in named]
    lines.append(f"namespace etx_firmware::{model.name} {{")
    spans = []
    for kind in ("input", "output"):
        rows = [f"{{{i}, {name}}}" for its_kind, i, name in named if its_kind == kind]
        spans.append(f"k{kind.title()}s" if rows else "{}")
        if rows:
            lines.append(f"inline constexpr TestTensor k{kind.title()}s[] = {{{', '.join(rows)}}};")
    lines.append(f"inline constexpr Test kTest = {{{', '.join(spans)}}};\n}}")
    return "\n" + "\n".join(lines) + "\n"


def _write_blobs(folder: Path, firmware: Firmware) -> None:
    """Write the files and the tests' arrays, and the assembly that links or names them."""
    folder.mkdir()
    image, places, blobs, lines = firmware.image, firmware.places(), [], []
    for path in image.files():
        symbol, name = _file(image, path), f"{image.name_of(path)}.pte"
        shutil.copyfile(path, folder / name)
        if image.is_read:
            lines += ['  .section .arenas, "aw", %nobits', "  .balign 16"]
            lines += [f"  .global {symbol}, {symbol}_end", f"{symbol}:"]
            lines += [f"  .space {path.stat().st_size}", f"{symbol}_end:"]
            continue
        if path not in places:
            blobs.append((symbol, ".model", name))
            continue
        ends = ((symbol, 0), (f"{symbol}_end", path.stat().st_size))
        for each, more in ends:
            lines += [f"  .global {each}", f"  .set {each}, {places[path] + more:#x}"]
    for model in image.models:
        for kind, index, array in _arrays(model):
            name = f"{model.name}_{kind}{index}"
            blobs.append((f"etx_{name}", ".test", f"{name}.bin"))
            (folder / blobs[-1][2]).write_bytes(np.ascontiguousarray(array).tobytes())
    for symbol, section, file in blobs:
        lines += [f'  .section {section}, "a"', "  .balign 16", f"  .global {symbol}, {symbol}_end"]
        lines += [f"{symbol}:", f'  .incbin "{file}"', f"{symbol}_end:"]
    (folder / "blobs.S").write_text("\n".join(lines) + "\n", encoding="utf-8")
