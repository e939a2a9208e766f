# SPDX-License-Identifier: BSD-3-Clause
"""Releases one package: `python tools/release.py etx-schema [patch|minor|major] [--dry-run]`.

Raises the version, moves the fragments of changelog.d into CHANGELOG.md, commits and tags.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys

from projects import ROOT, PackagingError, Project, load_projects

PARTS = ("major", "minor", "patch")
KINDS = ("added", "changed", "fixed", "removed")


def raised(version: str, part: str) -> str:
    numbers = [int(number) for number in version.split(".")]
    at = PARTS.index(part)
    return ".".join(map(str, [*numbers[:at], numbers[at] + 1, *[0] * (2 - at)]))


def fragments(project: Project) -> dict[str, list[str]]:
    """Return the texts of changelog.d by kind; each file is `<slug>.<kind>.md`."""
    found: dict[str, list[str]] = {}
    for path in sorted((project.path / "changelog.d").glob("*.md")):
        kind = path.stem.rpartition(".")[2]
        if kind not in KINDS:
            raise PackagingError(f"{path.name}: the kind is none of {', '.join(KINDS)}")
        found.setdefault(kind, []).append(" ".join(path.read_text().split()))
    return found


def section(version: str, date: str, found: dict[str, list[str]]) -> str:
    lines = [f"## {version} ({date})", ""]
    for kind in KINDS:
        texts = [text.removeprefix("- ") for text in found.get(kind, ())]
        lines += [f"- {kind.capitalize()}: {text}" for text in texts]
    return "\n".join(lines) + "\n"


def with_section(changelog: str, text: str) -> str:
    """Put a section above the older ones."""
    head, mark, older = changelog.partition("\n## ")
    return f"{head.rstrip()}\n\n{text}" + (f"\n## {older}" if mark else "")


def git(*arguments: str) -> str:
    return subprocess.check_output(["git", "-C", str(ROOT), *arguments], text=True)


def release(project: Project, part: str, *, dry_run: bool) -> None:
    found = fragments(project)
    if not found:
        raise PackagingError(
            f"{project.name}: changelog.d is empty, so there is nothing to release"
        )
    version = raised(project.version, part)
    tag = f"{project.name}-{version}"
    text = section(version, datetime.date.today().isoformat(), found)
    print(f"{tag}\n\n{text}")
    if dry_run:
        return
    if git("status", "--porcelain", "--", str(project.path)):
        raise PackagingError(f"{project.path.name}: commit or undo what is changed there first")
    if git("tag", "--list", tag):
        raise PackagingError(f"the tag {tag} exists")
    file = project.path / "src" / project.module / "_version.py"
    file.write_text(re.sub(r'"[\d.]+"', f'"{version}"', file.read_text(), count=1))
    changelog = project.path / "CHANGELOG.md"
    changelog.write_text(with_section(changelog.read_text(), text))
    for path in (project.path / "changelog.d").glob("*.md"):
        path.unlink()
    git("add", "-A", "--", str(project.path))
    git("commit", "-q", "-m", f"{project.name.removeprefix('etx-')}: release {version}")
    git("tag", "-a", tag, "-m", f"{project.name} {version}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package")
    parser.add_argument("part", nargs="?", choices=PARTS, default="patch")
    parser.add_argument("--dry-run", action="store_true", help="print what would be released")
    options = parser.parse_args(arguments)
    projects = load_projects()
    try:
        if options.package not in projects:
            raise PackagingError(f"no package {options.package!r}, only {', '.join(projects)}")
        release(projects[options.package], options.part, dry_run=options.dry_run)
    except PackagingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
