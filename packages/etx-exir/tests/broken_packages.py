# SPDX-License-Identifier: BSD-3-Clause
"""Packages that are broken in many ways, as they lie beside working ones in an environment."""

from __future__ import annotations

from pathlib import Path

GROUPS = ("etx.commands", "etx.plugins", "etx.targets", "etx.backends", "etx.show", "etx.abi")
"""The groups of entry points that the packages of ETX read."""

MODULES = {
    "exits when imported": "raise SystemExit(3)",
    "calls sys.exit": "import sys\nsys.exit()",
    "is not Python": "def (",
    "is not UTF-8": b"# \xff\nmake = 3",
    "raises when imported": "raise RuntimeError('100% broken\\nin two lines')",
    "lacks what it imports": "import no_such_module_anywhere",
    "raises what is not an Exception": "raise GeneratorExit('stop')",
    "raises what has no text": (
        "class Odd(Exception):\n    def __str__(self):\n        raise ValueError('x')\nraise Odd"
    ),
    "calls itself": "def f():\n    f()\nf()",
    "has no such name": "",
    "is a number": "make = 3",
    "takes no arguments": "def make(a, b, c, d):\n    return 1",
    "returns a number": "def make(*_):\n    return 3",
    "returns a folder": "def make(*_):\n    return '/tmp'",
    "returns no path": "def make(*_):\n    return 'a\\0b'",
    "raises when called": "def make(*_):\n    raise OSError(28, 'No space left', 'x')",
    "exits when called": "import sys\ndef make(*_):\n    sys.exit('bye')",
    "adds a half": (
        "def make(added=None, *_):\n"
        "    added.add_parser('bad', help='100%')\n    raise RuntimeError('half')"
    ),
    "adds bad help": "def make(added=None, *_):\n    added.add_parser('bad', help='100%')",
    "adds another": "def make(added=None, *_):\n    added.add_parser('worse')",
    "replaces a command": "def make(added=None, *_):\n    added.choices['show'] = None",
    "removes all": "def make(added=None, *_):\n    added.choices.clear()",
}
"""What is wrong, and the module `broken_N`, whose `make` is what the entry points name."""

METADATA = {
    "entry points are not UTF-8": {"entry_points.txt": b"[%s]\nbad\xff = broken:make\n"},
    "entry points have no value": {"entry_points.txt": b"[%s]\nbad\n"},
    "entry points name nothing": {"entry_points.txt": b"[%s]\nbad = what is this?\n"},
    "entry points have no section": {"entry_points.txt": b"bad = broken:make\n"},
    "METADATA is not UTF-8": {"METADATA": b"Name: broken\xff\n", "entry_points.txt": b"[%s]\n"},
    "METADATA is missing": {"METADATA": None, "entry_points.txt": b"[%s]\nbad = broken:make\n"},
    "METADATA is empty": {"METADATA": b"", "entry_points.txt": b"[%s]\nbad = broken:make\n"},
}
"""What is wrong, and the files of the package's metadata that differ."""

KINDS = (*MODULES, *METADATA)


def install(folder: Path, kind: str, group: str, name: str, module: str) -> None:
    """Write a package that is broken in the way `kind` and offers `name` to `group`."""
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    files: dict[str, bytes | None] = {
        "METADATA": f"Name: {module}\nVersion: 1.0\n".encode(),
        "entry_points.txt": f"[{group}]\n{name} = {module}:make\n".encode(),
    }
    for file, content in METADATA.get(kind, {}).items():
        files[file] = content and content.replace(b"%s", group.encode())
    for file, content in files.items():
        if content is not None:
            (info / file).write_bytes(content)
    code = MODULES.get(kind, "")
    (folder / f"{module}.py").write_bytes(code if isinstance(code, bytes) else code.encode())
