# SPDX-License-Identifier: BSD-3-Clause
"""Builds the packages in order and installs them by path, with only the standard library.

    python tools/wheels.py                                   build all wheels into dist/
    python tools/wheels.py --sdist etx-schema                one wheel and sdist
    python tools/wheels.py --install etx-runtime --venv DIR  into an environment (made if missing)
    python tools/wheels.py --install etx-exir --group test   into this interpreter's environment

Our names never reach an index: our wheels are installed without dependencies, then what they
require of others, within constraints.txt.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from build import Builder
from environments import Environment, locked, shown
from projects import PackagingError, close, load_projects, order, split_requirement


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", nargs="*", metavar="PKG", help="build these; all by default")
    parser.add_argument("--sdist", action="store_true", help="build sdists too")
    parser.add_argument("--order", action="store_true", help="print the build order and stop")
    parser.add_argument(
        "--install", nargs="*", metavar="PKG[EXTRA]", help="install these and what they need"
    )
    parser.add_argument("--group", help="add this dependency group of each package")
    parser.add_argument("--no-siblings", action="store_true", help="leave out the group's siblings")
    parser.add_argument("--others-only", action="store_true", help="install none of our wheels")
    parser.add_argument("--with", nargs="+", dest="extra", default=[], metavar="REQUIREMENT")
    parser.add_argument("--with-no-deps", nargs="+", dest="bare", default=[], metavar="REQUIREMENT")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to serve")
    parser.add_argument(
        "--also", type=Path, action="append", default=[], help="a folder of more packages"
    )
    parser.add_argument("--venv", type=Path, help="install into this environment")
    options = parser.parse_args(arguments)
    if options.install is not None and options.build:
        parser.error("name the packages once: after --install")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        projects = load_projects(also=[folder.resolve() for folder in options.also])
        if options.order:
            print("\n".join(order(projects)))
            return 0
        if options.install is not None:
            install(options)
            return 0
        names = [split_requirement(name)[0] for name in options.build] or list(projects)
        with locked():
            builder = Builder(projects, Environment(options.python))
            for path in builder.publish(close(projects, names).ours, sdist=options.sdist):
                print(shown(path))
    except PackagingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def install(options: argparse.Namespace) -> None:
    projects = load_projects(also=[folder.resolve() for folder in options.also])
    closure = close(projects, options.install, options.group, siblings=not options.no_siblings)
    if options.venv:
        environment = Environment.create(options.venv.resolve(), options.python)
    else:
        environment = Environment(options.python)
    environment.require_private()
    names = [] if options.others_only else closure.ours
    with locked():
        builder = Builder(projects, environment)
        wheels = {name: builder.wheel(name) for name in names}
    environment.install_wheels(wheels)
    environment.install_others([*closure.others, *options.extra])
    environment.install_others([*closure.others_no_deps, *options.bare], deps=False)


if __name__ == "__main__":
    sys.exit(main())
