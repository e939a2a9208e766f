# SPDX-License-Identifier: BSD-3-Clause
"""Draws `etx report` of six models in both themes: `python interop/pictures.py [NAME...]`.

Writes docs/pictures/report-NAME-THEME.png, each of at most 60 kB, to be looked at and kept.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from etx_devtools.report import document, page
from etx_devtools.report.measure import measure
from etx_exir import to_edge_transform_and_lower
from etx_exir.stages import Stages
from modelset import build
from PIL import Image

BROWSERS = ("chromium-headless-shell", "chromium")
NAMES = ("mobilenet_v2", "minilm", "lstm", "unet", "deit_tiny", "resnet18")
THEMES = {"light": 1, "dark": 0}
SIZE, COLOURS, MOST = (1280, 1400), (24, 16, 12, 8), 60_000
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")


def report(name: str, folder: Path) -> Path:
    """Write the page of a model of the set, measured here, with its stages."""
    built = build(name)
    program = torch.export.export(
        built.module, built.example, dynamic_shapes=built.dynamic_shapes, strict=False
    )
    stages = Stages({"forward": program})
    edge = to_edge_transform_and_lower(program, observer=stages)
    path, inputs = folder / f"{name}.pte", folder / f"{name}.npz"
    edge.to_executorch().save(path)
    np.savez(inputs, *(np.asarray(each) for each in built.calls[0]))
    log = stages.document(path.read_bytes(), {})["methods"]
    text = page(document(path, measure(str(path), [str(inputs)]), None, log))
    html = folder / f"{name}.html"
    html.write_text(text)
    return html


def draw(html: Path, theme: str, browser: str, out: Path) -> int:
    """Draw the top of a page and return the bytes of the picture."""
    picture = html.with_suffix(f".{theme}.png")
    wide, high = SIZE
    command = [browser, *FLAGS, "--virtual-time-budget=3000", f"--window-size={wide},{high}"]
    command += [f"--user-data-dir={html.parent / 'profile'}", f"--screenshot={picture}"]
    command += [
        f"--blink-settings=preferredColorScheme={THEMES[theme]}",
        f"{html.as_uri()}#forward/9",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    half = Image.open(picture).convert("RGB").resize((wide * 3 // 4, high * 3 // 4), Image.LANCZOS)
    for colours in COLOURS:
        half.quantize(colours, dither=Image.Dither.NONE).save(out, optimize=True)
        if out.stat().st_size <= MOST:
            break
    return out.stat().st_size


def main(names: list[str]) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"a browser is missing: one of {', '.join(BROWSERS)}")
    folder = Path(__file__).resolve().parent.parent / "docs" / "pictures"
    with tempfile.TemporaryDirectory() as temporary:
        for name in names or NAMES:
            html = report(name, Path(temporary))
            for theme in THEMES:
                out = folder / f"report-{name}-{theme}.png"
                size = draw(html, theme, browser, out)
                print(f"{out.name}: {size:,} bytes", flush=True)
                if size > MOST:
                    sys.exit(f"{out.name} has {size:,} bytes, at most {MOST:,}")


if __name__ == "__main__":
    main(sys.argv[1:])
