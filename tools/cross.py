# SPDX-License-Identifier: BSD-3-Clause
"""Builds wheels for aarch64 Linux on another machine, and makes an arm64 Python to run them.

    python tools/cross.py FOLDER PACKAGE...

FOLDER/wheels then holds the wheels of these packages and of all that they need, FOLDER/root
Debian's Python for arm64 and FOLDER/site what its pip has installed, run by qemu-aarch64. Needs a
cross compiler, QEMU's user mode and apt, of a Debian whose Python is this one; no root.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from build import Builder, state_platform, variables
from environments import CONSTRAINTS, Environment, link_or_copy, locked, run, say, shown
from projects import ROOT, PackagingError, Project, close, load_projects

TRIPLE = "aarch64-linux-gnu"
TOOLCHAIN = ROOT / "examples" / "etx-run" / "toolchains" / "aarch64.cmake"
TOOLS = {  # with the Debian package of each
    f"{TRIPLE}-g++": f"g++-{TRIPLE}",
    "qemu-aarch64": "qemu-user",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
}
DEBIAN = ("python3", "python3-pip", "libstdc++6")
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")


def require_tools() -> None:
    """Raise PackagingError that names what is missing, all at once."""
    absent = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    if absent:
        raise PackagingError(f"missing: apt-get install {' '.join(absent)}")


def build(builder: Builder, project: Project, folder: Path) -> None:
    """Build one native wheel into ``folder``; its tag is what auditwheel allows."""
    say(f"building {project.name} for {TRIPLE}")
    environment = builder.prepared(project)
    soabi = f"cpython-{sys.version_info[0]}{sys.version_info[1]}-{TRIPLE}"
    settings = variables(environment) | {
        "_PYTHON_HOST_PLATFORM": "linux-aarch64",
        "SETUPTOOLS_EXT_SUFFIX": f".{soabi}.so",
        "LDFLAGS": "-static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL",
    }
    defined = {
        "CMAKE_TOOLCHAIN_FILE": TOOLCHAIN,
        "Python_SOABI": soabi,
        "Python_INCLUDE_DIR": sysconfig.get_path("include"),
    }
    made = folder / f"of-{project.name}"
    shutil.rmtree(made, ignore_errors=True)
    command = [environment.python, "-m", "build", "--wheel", "--no-isolation"]
    command += ["--skip-dependency-check", f"-Cbuild-dir={folder / 'build' / project.name}"]
    command += [f"-Ccmake.define.{name}={value}" for name, value in defined.items()]
    run([*command, "-o", made, project.path], env=settings)
    state_platform(project, environment, made, settings)
    (wheel,) = made.glob("*.whl")
    (folder / "wheels").mkdir(exist_ok=True)
    for older in (folder / "wheels").glob(f"{project.module}-*.whl"):
        older.unlink()
    wheel.rename(folder / "wheels" / wheel.name)
    made.rmdir()
    print(shown(folder / "wheels" / wheel.name), flush=True)


def arm64_python(folder: Path) -> list[str | Path]:
    """Return the command of Debian's Python for arm64, unpacked into ``folder``/root."""
    root, apt = folder / "root", folder / "apt"
    python = root / "usr" / "bin" / "python3"
    command: list[str | Path] = ["qemu-aarch64", "-L", root, python]
    ready = root / "ready"
    if ready.exists() and ready.read_text() == " ".join(DEBIAN):
        return command
    say("fetching Debian's Python for arm64")
    shutil.rmtree(root, ignore_errors=True)
    for name in ("lists/partial", "archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    (apt / "status").write_text("")
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "1",
        "Dir::State": apt,
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt,
    }
    get = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    run([*get, "update"])
    run([*get, "install", "--yes", "--download-only", "--no-install-recommends", *DEBIAN])
    for package in sorted((apt / "archives").glob("*.deb")):
        run(["dpkg-deb", "--extract", package, root])
    ready.write_text(" ".join(DEBIAN))
    return command


def install(builder: Builder, folder: Path, names: list[str]) -> None:
    """Let the arm64 Python's own pip install the packages, which reads each wheel's tags."""
    wheels, site = folder / "wheels", folder / "site"
    python = arm64_python(folder)
    found = subprocess.check_output([*python, "-c", "import sys; print(*sys.version_info[:2])"])
    if tuple(map(int, found.split())) != sys.version_info[:2]:
        raise PackagingError(
            f"Debian's Python for arm64 is {found.decode().strip().replace(' ', '.')}, this is "
            f"{sys.version_info[0]}.{sys.version_info[1]}; run with python3 of that version"
        )
    closure = close(builder.projects, names)
    environment = Environment(sys.executable)
    fetch = ["download", "--quiet", "--only-binary=:all:", "--dest", wheels, "-c", CONSTRAINTS]
    for platform in PLATFORMS:
        fetch += ["--platform", platform]
    fetch += ["--python-version", f"{sys.version_info[0]}.{sys.version_info[1]}"]
    environment.pip(*fetch, *closure.others)
    shutil.rmtree(site, ignore_errors=True)
    say("installing under qemu-aarch64")
    command = [*python, "-m", "pip", "install", "--quiet", "--no-index", "--find-links", wheels]
    run([*command, "--target", site, *names])


def main(folder: Path, names: list[str]) -> int:
    """Build and install."""
    try:
        require_tools()
        projects = load_projects()
        builder = Builder(projects, Environment(sys.executable))
        ours = close(projects, names).ours
        folder.mkdir(parents=True, exist_ok=True)
        with locked():
            for name in ours:
                if projects[name].native:
                    build(builder, projects[name], folder)
                else:
                    wheel = builder.wheel(name)
                    placed = folder / "wheels" / wheel.name
                    placed.parent.mkdir(exist_ok=True)
                    placed.unlink(missing_ok=True)
                    link_or_copy(wheel, placed)
        install(builder, folder, names)
    except PackagingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
