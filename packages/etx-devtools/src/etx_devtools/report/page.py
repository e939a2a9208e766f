# SPDX-License-Identifier: BSD-3-Clause
"""Put data, style and script into one HTML file that fetches nothing and runs only itself."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import Any

__all__ = ["page"]

_PARTS = ("draw.js", "graph.js", "panels.js", "tables.js", "main.js")


def page(document: dict[str, Any]) -> str:
    """Return the HTML of a document of `document()`.

    All text of the file reaches the page as JSON and is shown by `textContent`, never as markup.
    """
    folder = files("etx_devtools.report") / "assets"
    style = (folder / "style.css").read_text(encoding="utf-8")
    script = "\n".join((folder / name).read_text(encoding="utf-8") for name in _PARTS)
    script = f"(() => {{\n{script}\n}})();\n"
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    data = json.dumps(document, separators=(",", ":"))
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    title = html.escape(document["file"])
    body = (folder / "body.html").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}"
        f'<script type="application/json" id="data">{data}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
