# SPDX-License-Identifier: BSD-3-Clause
"""Opens files of ETX in Netron and in model-explorer: `python interop/viewers.py`.

Both viewers come from PyPI as they are. model-explorer's PTE adapter converts each file; Netron's
server gives it to a headless browser, which draws it. Netron 9.3.3 refuses a file with an operator
that it has no schema of, ExecuTorch's files with such ones too: those of the default target are
drawn from the copy that `etx report --netron` writes. Every kernel of ours has a name for Netron.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import netron
import torch
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_devtools.report import document
from etx_devtools.report.netron import CALLS, UNKNOWN, netron_copy
from etx_devtools.report.overlay import overlay
from etx_exir import ExecutorchBackendConfig, compile
from etx_kernels_portable import target_path
from etx_quant import quantize
from etx_schema import DelegateCall, KernelCall, read_pte, write_pte
from etx_schema.operator_names import operator_name
from pte_adapter_model_explorer.main import PTEAdapter
from torch import nn

BROWSERS = ("chromium-headless-shell", "chromium")
UNDRAWN = ("MoveCall", "JumpFalseCall")  # Netron leaves out what calls nothing
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=30000")
FLAGS += ("--enable-logging=stderr", "--dump-dom")


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.LSTM(8, 16, 2)
        self.last = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers(x)[0][-1])


def layers() -> nn.Module:
    convolution = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(convolution, nn.Flatten(), nn.Linear(392, 10), nn.Softmax(-1))


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        attended = nn.functional.scaled_dot_product_attention(x, x, x)
        return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (attended,))


class Hypotenuse(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.hypot(x)


def write(folder: Path) -> list[Path]:
    image, words = (torch.ones(1, 3, 16, 16),), (torch.ones(12, 1, 8),)
    both = ExecutorchBackendConfig(target="executorch")
    integers = quantize(layers().eval(), [image])
    rows = quantize(nn.Linear(32, 4).eval(), [(torch.ones(2, 32),)], recipe="int4")
    compile(layers(), image, path=folder / "layers.pte", config=both)
    compile(integers, image, path=folder / "quantized.pte", config=both)
    compile(layers(), image, path=folder / "delegated.pte", partitioner=[XnnpackPartitioner()])
    compile(Recurrent(), words, path=folder / "recurrent.pte", config=both)
    compile(layers(), image, path=folder / "own.pte")
    compile(Recurrent(), words, path=folder / "own_recurrent.pte")
    compile(integers, image, path=folder / "own_integers.pte")
    compile(rows, (torch.ones(2, 32),), path=folder / "own_rows.pte")
    compile(Branches(), words, path=folder / "own_branches.pte")
    compile(Hypotenuse(), words, path=folder / "unknown.pte")
    return sorted(folder.glob("*.pte"))


def labels(path: Path) -> list[str]:
    """Return what each instruction is: the operator without its overload, or the backend."""
    (plan,) = read_pte(path).program.execution_plan
    found = []
    for instruction in plan.chains[0].instructions:
        call = instruction.instr_args
        if isinstance(call, DelegateCall):
            found.append(plan.delegates[call.delegate_index].id or "")
        elif isinstance(call, KernelCall):
            found.append(operator_name(plan, call.op_index).partition(".")[0])
        else:
            found.append(type(call).__name__)
    return found


def check_model_explorer(path: Path) -> str:
    graphs = PTEAdapter().convert(str(path), {})["graphCollections"][0].graphs
    (graph,) = (each for each in graphs if each.id == "forward")
    nodes = {node.id: node.label for node in graph.nodes}
    inner = [label for key, label in nodes.items() if not key.startswith("Graph")]
    assert inner == labels(path), f"{path.name}: {inner} instead of {labels(path)}"
    data = overlay(path, document(path))["forward"]["results"]
    assert data.keys() == nodes.keys() - {"GraphInputs", "GraphOutputs"}, data.keys()
    return f"{len(nodes)} nodes, {len(data)} with node data"


def check_netron(path: Path, browser: str, folder: Path) -> str:
    drawn, refused = netron_copy(path)
    copy = folder / path.name
    write_pte(drawn, copy)
    page = netron_page(copy, browser, folder / "profile")
    if refused:
        refusal = f"Operator schema for '{refused[0]}' not found"
        assert refusal in html.unescape(page), f"{path.name}: Netron says no more: {refusal}"
        return f"no schema of {refused[0]}"
    own = [label for label in labels(path) if label.startswith("etx::")]
    if own:
        said = f"Operator schema for '{own[0]}.out' not found"
        found = html.unescape(netron_page(path, browser, folder / "profile"))
        assert said in found, f"{path.name}: Netron draws {own[0]} by now, without a copy"
    shown = re.findall(r"<text[^>]*>([^<]+)</text>", page)
    called = (label for label in labels(copy) if label not in UNDRAWN)
    names = [label.partition("::")[2] or label for label in called]
    absent = [name for name in names if not any(_is(name, text) for text in shown)]
    assert not absent, f"{path.name}: Netron does not show {absent}, only {shown[:20]}"
    return f"{len(names)} instructions drawn, {len(own)} of them by other names"


def check_names() -> str:
    """Check that each operator of our kernels has a name in Netron's tables, in a copy."""
    tables = Path(netron.__file__).parent / "pytorch-metadata.json"
    known = {each["name"].partition("(")[0] for each in json.loads(tables.read_text())}
    kernels = json.loads(Path(target_path()).read_text())["operators"].keys()
    absent = {name for name in kernels if CALLS.get(name, name).partition(" ")[0] not in known}
    assert absent == UNKNOWN, f"without a name in Netron: {sorted(absent ^ UNKNOWN)}"
    idle = [name for name in CALLS if name in known]
    assert not idle, f"Netron knows {idle} by now"
    return f"{len(kernels - absent)} of {len(kernels)} kernels have a name"


def netron_page(path: Path, browser: str, folder: Path) -> str:
    """Return what Netron made of a file, as HTML."""
    host, port = netron.start(str(path), address=("localhost", 0), browse=False)
    door = ThreadingHTTPServer(("localhost", 0), _door(port))
    threading.Thread(target=door.serve_forever, daemon=True).start()
    command = [browser, *FLAGS, f"--user-data-dir={folder}"]
    address = f"http://localhost:{door.server_port}/"
    try:
        done = subprocess.run([*command, address], capture_output=True, text=True, timeout=300)
    finally:
        netron.stop((host, port))
        door.shutdown()
    logged = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not logged, logged
    return done.stdout


def _is(name: str, text: str) -> bool:
    """Tell whether a label is a name, of which Netron leaves out the middle where it is long."""
    start, cut, end = text.partition("…")
    return name.startswith(start) and name.endswith(end) if cut else name == text


def _door(port: int) -> type[BaseHTTPRequestHandler]:
    """Return what sends a browser to Netron with the question about cookies answered."""

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Set-Cookie", "consent=1; Path=/")
            self.send_header("Location", f"http://localhost:{port}/")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    return Door


def main() -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"a browser is missing: one of {', '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory() as name:
        copies = Path(name) / "copies"
        copies.mkdir()
        print(f"netron: {check_names()}", flush=True)
        for path in write(Path(name)):
            print(f"model-explorer {path.name}: {check_model_explorer(path)}", flush=True)
            print(f"netron {path.name}: {check_netron(path, browser, copies)}", flush=True)


if __name__ == "__main__":
    main()
