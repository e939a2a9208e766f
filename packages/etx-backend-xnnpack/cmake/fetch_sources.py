# SPDX-License-Identifier: BSD-3-Clause
"""Gets the archives of XNNPACK from the package sources of a Debian machine, into a folder.

    python fetch_sources.py FOLDER

apt-get checks their signatures; what it keeps meanwhile lies in the folder, too.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = (
    "xnnpack=0.0~git20241108.4ea82e5-2",
    "pthreadpool=0.0~git20240616.560c60d-1",
    "cpuinfo=0.0~git20250905.877328f-1",
    "fxdiv=0.0~git20200417.b408327-4",
)
LISTS = Path("/etc/apt")


def debian_source() -> tuple[str, str]:
    """Return the address and the keyring of the machine's own sources."""
    for path in sorted(LISTS.glob("sources.list.d/*.sources")):
        text = path.read_text()
        address = re.search(r"^URIs:\s*(\S+)", text, re.MULTILINE)
        keyring = re.search(r"^Signed-By:\s*(\S+)", text, re.MULTILINE)
        if address and "security" not in address[1]:
            return address[1], keyring[1] if keyring else ""
    for path in (LISTS / "sources.list", *sorted(LISTS.glob("sources.list.d/*.list"))):
        text = path.read_text() if path.exists() else ""
        line = re.search(r"^deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+\S+\s+.*main", text, re.MULTILINE)
        if line:
            keyring = re.search(r"signed-by=(\S+)", line[1] or "")
            return line[2], keyring[1] if keyring else ""
    raise SystemExit("no Debian package sources in /etc/apt")


def main(folder: Path) -> None:
    """Fetch the archives."""
    address, keyring = debian_source()
    state = folder / "apt"
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    rows = ["Types: deb-src", f"URIs: {address}", "Suites: trixie sid", "Components: main"]
    rows += [f"Signed-By: {keyring}"] if keyring else []
    (state / "debian.sources").write_text("\n".join(rows) + "\n")
    options = [
        f"-oDir::Etc::sourcelist={state / 'debian.sources'}",
        "-oDir::Etc::sourceparts=/dev/null",
        f"-oDir::State::Lists={state / 'lists'}",
        "-oDir::Cache::pkgcache=",
        "-oDir::Cache::srcpkgcache=",
    ]
    subprocess.run(["apt-get", *options, "update"], check=True, cwd=folder)
    arguments = ["source", "--download-only", "--tar-only", *PACKAGES]
    subprocess.run(["apt-get", *options, *arguments], check=True, cwd=folder)
    shutil.rmtree(state)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
