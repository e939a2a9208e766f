# SPDX-License-Identifier: BSD-3-Clause
"""Files that are cut, changed and swapped, for all commands that look into programs.

`python attacks.py --count 20000 --seed 1 [--first N]` draws more than the tests do.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import etx_schema as es
import numpy as np
from etx_schema import cli
from etx_schema._generated.etdump import ETDump
from etx_schema.pte import NamedBlob
from report_programs import HOSTILE, chain_of, log_of

DATA = Path(__file__).parent / "data"
SECONDS = 20
LINES = 12
LETTERS = 4000
NUMBERS = (0, 1, -1, 2, 127, 255, 65536, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63))
TEXTS = (
    "",
    HOSTILE,
    "x" * 10_000,
    "a\nb\x1b[31m\0",
    "../../etc",
    "é\udcff",
    "aten::add",
    "forward",
)

COMMANDS = """\
show {pte} [--json] [--debug]
check {pte} [--json]
memory {pte} [--json]
memory {pte} -o out.svg
size {pte} --by weight [--json]
size {bpte} --by module [--json]
diff {pte} ok.pte [--json]
diff ok.pte {pte} [--json]
profile {pte} --executions 2 [--json]
profile {pte} --etdump ok.etdp --by instruction [--json]
profile ok.pte --etdump {etdp} --by module [--json]
profile ok.pte --etdump {etdp} --by line --trace out.json
report {pte} -o out.html [--json]
report {pte} --run -o out.html --overlay out.json
report {pte} -o out.html --netron out.pte
report ok.pte --etdump {etdp} -o out.html [--json]
report ok.pte --stages {stages} -o out.html [--json]
report {pte} ok.pte --run -o out.html
report ok.pte --run --inputs {npz} -o out.html
verify {bpte} [--json]
verify {bpte} --junit out.xml
bundle {pte} --inputs ok.npz -o out.bpte [--json]
bundle {bpte} --inputs ok.npz -o out.bpte
bundle ok.pte --inputs {npz} -o out.bpte [--json]
bundle ok.pte --inputs ok.npz --expect {npz} -o out.bpte [--json]
run {pte} --etdump out.etdp --values all
run ok.pte --input {npz} --output-dir out.folder
run ok.pte --input ok.npz --expect {npz}
bench {pte} --iterations 1 --operators [--json]
"""
WITH_TORCH = """\
compare {pte} --against ok.pte [--json]
compare ok.pte --against {pte} [--json]
compare ok.pte --eager net.py:net --inputs {npz} [--json]
compare ok.pte --eager net.py:net --etdump {etdp} [--json]
compare ok.pte --against-etdump {etdp} --inputs ok.npz [--json]
compare {pte} --eager net.py:net --reduce out.pte [--json]
compare {pt2} --eager net.py:net
compare ok.pte --against {pt2} [--json]
compare ok.pte --eager net.py:net --bisect xnnpack --bisect-log {log}
"""
RECORD = [
    "run",
    "ok.pte",
    "--input",
    "ok.npz",
    "--etdump",
    "ok.etdp",
    "--values",
    "all",
    "--debug-buffer",
    "ok.bin",
]


@dataclass
class Workshop:
    """A folder with a good file of each kind, and what stands in for a name of none."""

    folder: Path
    good: dict[str, list[Path]] = field(default_factory=dict)

    @classmethod
    def made(cls, folder: Path) -> Workshop:
        """Fill `folder`."""
        found = cls(folder)
        for name in ("add", "cond", "counter", "delegated", "methods", "dynamic_linear"):
            found._add("pte", folder / f"{name}.pte", (DATA / f"{name}.pte").read_bytes())
        found._add("pte", folder / "chain.pte", chain_of(6))
        okay = (DATA / "add.pte").read_bytes()
        found._add("pte", folder / "ok.pte", okay)
        found._add("stages", folder / "ok.json", json.dumps(log_of(okay)).encode())
        found._add("bpte", folder / "ok.bpte", (DATA / "executorch.bpte").read_bytes())
        for source in sorted((DATA / "etdump").glob("*.etdp")):
            found._add("etdp", folder / source.name, source.read_bytes())
            found._add("bin", folder / f"{source.stem}.bin", _beside(source))
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.savez(folder / "ok.npz", x, x)
        found.good["npz"] = [folder / "ok.npz"]
        _quiet(RECORD)
        _quiet(["bundle", "ok.pte", "--inputs", "ok.npz", "-o", "own.bpte"])
        found.good["etdp"].append(folder / "ok.etdp")
        found.good["bpte"].append(folder / "own.bpte")
        return found

    def add_torch(self) -> None:
        """Add what commands with torch read."""
        import torch

        text = (
            "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x, y):\n"
            "        for _ in range(6):\n            x = x + y\n        return x\n\n\n"
            "def net():\n    return Net(), (torch.ones(2, 3), torch.ones(2, 3))\n"
        )
        (self.folder / "net.py").write_text(text)
        _quiet(["compile", "net.py:net", "-o", "ok.pte"])
        _quiet(RECORD)
        from net import net  # type: ignore[import-not-found]

        torch.export.save(torch.export.export(*net()), self.folder / "ok.pt2")
        self.good["pt2"] = [self.folder / "ok.pt2"]
        log = self.folder / "ok.log"
        log.write_text('{"steps": []}')
        self.good["log"] = [log]

    def _add(self, kind: str, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        self.good.setdefault(kind, []).append(path)


def _beside(path: Path) -> bytes:
    values = path.with_suffix(".bin")
    return values.read_bytes() if values.exists() else b""


def _quiet(words: list[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.main(words) == 0, words


def cut(content: bytes, draw: random.Random) -> bytes:
    """Cut at any length, most often a little."""
    return content[: draw.choice([draw.randrange(len(content) + 1), max(0, len(content) - 1)])]


def flip(content: bytes, draw: random.Random) -> bytes:
    """Change some bytes, in front more often."""
    changed = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 8, 64]) if changed else 0):
        limit = draw.choice([len(changed), min(len(changed), 64), min(len(changed), 1024)])
        changed[draw.randrange(limit)] = draw.randrange(256)
    return bytes(changed)


def count(content: bytes, draw: random.Random) -> bytes:
    """Write a huge or odd number where a count or an offset may be."""
    if len(content) < 8:
        return content
    at = 4 * draw.randrange(len(content) // 4)
    number = draw.choice([2**32 - 1, 2**31 - 1, 2**31, 2**24, 0, len(content)])
    return content[:at] + number.to_bytes(4, "little") + content[at + 4 :]


def longer(content: bytes, draw: random.Random) -> bytes:
    """Put bytes in the middle, or behind."""
    at = draw.choice([len(content), draw.randrange(len(content) + 1)])
    return content[:at] + draw.randbytes(draw.choice([1, 4, 64, 4096])) + content[at:]


def fields(content: bytes, draw: random.Random) -> bytes:
    """Change texts and numbers of a program, a dump, a bundle or a document, which stays whole."""
    with contextlib.suppress(es.EtxError, ValueError, OverflowError, UnicodeError, TypeError):
        if content[:1] in b"{[":
            return json.dumps(_changed(json.loads(content), draw)).encode()
        if content[8:12] == b"ED00":
            dump = es.decode_size_prefixed(ETDump, content, "ED00")
            _change(dump, draw)
            return es.encode(dump, "ED00", size_prefixed=True)
        if content[4:8] == b"BP08":
            bundle = es.read_bundle(content)
            _change(bundle, draw)
            return es.encode(bundle, "BP08")
        pte = es.read_pte(content)
        debug = pte.named_data.get("etx/debug")
        if debug is not None and draw.random() < 0.5:
            text = json.dumps(_changed(json.loads(bytes(debug.data)), draw))
            pte.named_data["etx/debug"] = NamedBlob(text.encode())
        else:
            _change(pte.program, draw)
        return es.serialize_pte(pte)
    return flip(content, draw)


def _change(root: Any, draw: random.Random) -> None:
    """Change some texts and numbers of a tree of tables."""
    places = [*_places(root)]
    for _ in range(draw.choice([1, 1, 2, 5]) if places else 0):
        holder, key, value = draw.choice(places)
        if isinstance(value, str):
            new: Any = draw.choice(TEXTS)
        elif isinstance(value, float):
            new = draw.choice([0.0, -1.0, float("nan"), float("inf"), 1e308])
        else:
            new = draw.choice(NUMBERS)
        if isinstance(holder, list):
            holder[key] = new
        else:
            setattr(holder, key, new)


def _places(item: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield holder, key and value of each text and number in tables and lists."""
    if isinstance(item, list):
        pairs: list[tuple[Any, Any]] = list(enumerate(item))
    elif hasattr(item, "FIELDS"):
        pairs = [(each.name, getattr(item, each.name)) for each in item.FIELDS]
    else:
        return
    for key, value in pairs:
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            yield item, key, value
        else:
            yield from _places(value)


def _changed(item: Any, draw: random.Random) -> Any:
    """Return a JSON document with one value replaced by one of another kind or size."""
    places: list[tuple[Any, Any]] = []
    pending = [item]
    while pending:
        holder = pending.pop()
        pairs = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, value in [*pairs]:
            places.append((holder, key))
            if isinstance(value, (dict, list)):
                pending.append(value)
    if places:
        holder, key = draw.choice(places)
        holder[key] = draw.choice([None, [], {}, -1, 10**30, 1.5, True, [[1]], {"a": 1}, *TEXTS])
    return item


ATTACKS = (cut, flip, count, longer, fields, fields)


@dataclass
class Case:
    """A command with one bad file: what it says must be a line or two."""

    number: int
    words: list[str]
    attack: str
    bad: str


def draw_case(workshop: Workshop, number: int, seed: int, commands: str) -> Case:
    """Draw a command, one file of it and what is wrong with that; write the file."""
    draw = random.Random(f"{seed}/{number}")
    line = draw.choice(commands.splitlines())
    words = [
        word.strip("[]") for word in line.split() if not word.startswith("[") or draw.random() < 0.5
    ]
    (place,) = [i for i, word in enumerate(words) if word.startswith("{")]
    kind = words[place].strip("{}")
    name = f"bad.{'json' if kind == 'stages' else kind}"
    bad = workshop.folder / name
    attack = draw.choice(
        [*(each.__name__ for each in ATTACKS), "swap", "absent", "folder", "other"]
    )
    if attack == "folder":
        bad.mkdir()
    elif attack in ("swap", "other"):
        kinds = [kind] if attack == "other" else sorted(set(workshop.good) - {kind})
        bad.write_bytes(draw.choice(workshop.good[draw.choice(kinds)]).read_bytes())
    elif attack != "absent":
        source = draw.choice(workshop.good[kind])
        (change,) = {each for each in ATTACKS if each.__name__ == attack}
        bad.write_bytes(change(source.read_bytes(), draw))
        if kind == "etdp":
            values = source.with_suffix(".bin").read_bytes()
            bad.with_suffix(".bin").write_bytes(
                cut(values, draw) if draw.random() < 0.3 else values
            )
    words[place] = name
    return Case(number, words, attack, name)


def attack(workshop: Workshop, number: int, seed: int, commands: str = COMMANDS) -> list[str]:
    """Run one case; return what is wrong with how it ended."""
    kept = {path.name for path in workshop.folder.iterdir()}
    case = draw_case(workshop, number, seed, commands)
    try:
        problems = _judge(case, workshop.folder)
        shown = f"case {number}, {case.attack}: etx {' '.join(case.words)}"
        return [f"{shown}: {problem}" for problem in problems]
    finally:
        for path in workshop.folder.iterdir():
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _judge(case: Case, folder: Path) -> Iterator[str]:
    before = {path.name for path in folder.iterdir()}
    out, err = io.StringIO(), io.StringIO()
    start = time.monotonic()
    failed = ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(case.words)
        except SystemExit as stop:
            code = int(stop.code or 0)
        except Exception:
            code, failed = -1, traceback.format_exc()
    if failed:
        yield failed
        return
    if time.monotonic() - start > SECONDS:
        yield f"took {time.monotonic() - start:.1f} s"
    said = err.getvalue()
    if "Traceback" in said:
        yield f"a traceback: {said}"
    if code not in (0, 1, 2):
        yield f"exit code {code}"
    if code == 2:
        yield from _judge_refusal(case, said)
        made = {path.name for path in folder.iterdir()} - before
        if made and "failed at instruction" not in said:
            yield f"refused, and left {sorted(made)}"
        if out.getvalue().strip():
            yield f"refused, and printed {out.getvalue()[:200]!r}"
    elif "--json" in case.words and out.getvalue().strip():
        try:
            json.loads(out.getvalue())
        except ValueError as error:
            yield f"not a document: {error}"
    half = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    if half:
        yield f"left {half}"


def _judge_refusal(case: Case, said: str) -> Iterator[str]:
    if not said.startswith("etx: ") or len(said.strip().splitlines()) > LINES:
        yield f"not a line or some: {said[:600]!r}"
    if len(said) > LETTERS:
        yield f"{len(said)} letters: {said[:300]!r}"
    names = (
        [case.bad, "bad.bin"]
        if "byte" in said
        else ["bad.", *(w for w in case.words[1:] if "." in w)]
    )
    told = case.words[0] in ("run", "bench") and "byte" not in said
    if not told and not any(name in said for name in names):
        yield f"names no file: {said[:600]!r}"
    if "Error(" in said or said.strip() in ("etx:", "etx: None"):
        yield f"says nothing: {said[:300]!r}"


def _batch(seed: int, first: int, last: int, with_torch: bool) -> int:
    """Run cases in this process, each announced, so that a crash has a name."""
    import faulthandler
    import resource

    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)
        workshop = Workshop.made(Path(folder))
        if with_torch:
            workshop.add_torch()
        commands = WITH_TORCH if with_torch else COMMANDS
        for number in range(first, last):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(2 * SECONDS)
            print(f"@{number}", flush=True)
            for problem in attack(workshop, number, seed, commands):
                print(problem, flush=True)
        os.chdir("/")
    return 0


def main() -> int:
    """Run many cases, in processes that may die; print what is wrong."""
    import subprocess

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--torch", action="store_true", help="what compares with models")
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    at, last, found = options.first, options.first + options.count, 0
    if options.here:
        return _batch(options.seed, at, last, options.torch)
    while at < last:
        words = [sys.executable, __file__, "--here", "--seed", str(options.seed)]
        words += ["--first", str(at), "--count", str(last - at)] + ["--torch"] * options.torch
        done = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        begun = -1
        assert done.stdout is not None
        for text in done.stdout:
            if text.startswith("@"):
                begun = int(text[1:])
            else:
                found += text.startswith("case ")
                print(text, end="", flush=True)
        if done.wait() == 0 or begun < 0:
            break
        print(f"case {begun}: the process ended with {done.returncode}", flush=True)
        at, found = begun + 1, found + 1
    print(f"{options.count} cases of seed {options.seed} from {options.first}: {found} problems")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
