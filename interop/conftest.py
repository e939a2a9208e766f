# SPDX-License-Identifier: BSD-3-Clause
"""Prepares the model set once: eager's calls, both exporters' files, both runtimes' results.

Three environments take part: ``--host`` (ETX's compiler), ``--device`` (ETX's runtime and kernels,
no torch) and ``--executorch`` (ExecuTorch, no ETX); ``--both`` is for what one process does with
both. This process needs only numpy and pytest.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from forked import call, end, show
from names import REFUSED_FLOWS, ROWS

HERE = Path(__file__).parent
EXPORTERS = RUNTIMES = ("etx", "executorch")
PAIRS = tuple(itertools.product(EXPORTERS, RUNTIMES))
SEEDS, DRAWN = 24, 8
SEED = int(os.environ.get("ETX_SEED", "0"))
TURNS = {"delegated": 2, "flow": 2, "lowering": 4, "pair": 2, "theirs_lowered": 2}
"""One in so many values of these parameters runs at a time, those from ETX_SEED on; all by hand."""
ALIKE = {
    "model": (
        ("resnet18", "efficientnet_b0"),
        ("mobilenet_v2", "mobilenet_v3_small"),
        ("lstm", "gru"),
    ),
    "quantized": (("mobilenet_v2_int8", "crepe_int8"),),
}
"""Values of these parameters of which one runs at a time, from ETX_SEED on; all by hand."""
DELEGATED_BY_HAND = ("vit_b_16", "int8-resnet18", "int8-efficientnet_b0", "dynamic-minilm")
"""Of the kind of `deit_tiny` and `int8-mobilenet_v2`, or in test_trained_weights.py."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("interop", "interpreters of the environments that take part")
    group.addoption("--host", required=True, help="has etx-exir and the models' packages")
    group.addoption("--device", required=True, help="has etx-runtime and kernels, no torch")
    group.addoption("--executorch", required=True, help="has executorch, no ETX")
    group.addoption("--both", help="has executorch and all of ETX")
    group.addoption("--delegates", help="has etx-runtime, kernels and etx-backend-xnnpack")
    group.addoption(
        "--by-hand",
        action="store_true",
        help="include the slow models, all cases of XNNPACK, what ExecuTorch's exporter refuses",
    )
    group.addoption("--programs", type=int, default=DRAWN, help="how many random programs")
    group.addoption("--folder", type=Path, help="keep the files here and reuse what exists")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "model" in metafunc.fixturenames:
        slow = metafunc.config.getoption("--by-hand")
        metafunc.parametrize("model", [r.name for r in ROWS.values() if slow or not r.by_hand])
        if "exporter" in metafunc.fixturenames:
            metafunc.parametrize(("exporter", "runtime"), pairs_of_models(metafunc.config))
    if "flow" in metafunc.fixturenames:
        flows = listed(metafunc.config, "reference.py")
        pairs = itertools.product(flows, EXPORTERS)
        left = left_out(metafunc.config)
        metafunc.parametrize(
            ("flow", "exporter"), [(f, e) for f, e in pairs if e == "etx" or f not in left]
        )
    if "lowering" in metafunc.fixturenames:
        metafunc.parametrize("lowering", listed(metafunc.config, "delegated.py"))
    if "quantized" in metafunc.fixturenames:
        metafunc.parametrize("quantized", listed(metafunc.config, "quantized.py"))
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--programs")))


def listed(config: pytest.Config, script: str) -> list[str]:
    """Return the names that a script knows."""
    names: list[str] = json.loads(call(config, "--host", script, "--list"))
    return names


def pytest_unconfigure() -> None:
    end()


def left_out(config: pytest.Config) -> frozenset[str]:
    """Return the programs that ExecuTorch's exporter refuses: it is asked again by hand."""
    return frozenset(() if config.getoption("--by-hand") else REFUSED_FLOWS)


def pairs_of_models(config: pytest.Config) -> tuple[tuple[str, str], ...]:
    """Return exporters with runtimes: ExecuTorch alone with large models by hand, it is slow."""
    return PAIRS if config.getoption("--by-hand") else PAIRS[:-1]


def pytest_report_header(config: pytest.Config) -> str:
    part = ", ".join(f"1 in {part} of {name}" for name, part in TURNS.items())
    part += "".join(f", of {'/'.join(group)} one" for groups in ALIKE.values() for group in groups)
    return "all by hand" if config.getoption("--by-hand") else f"of ETX_SEED={SEED}: {part}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what is not this seed's turn, and the slow delegated models, to runs by hand."""
    if config.getoption("--by-hand"):
        return
    numbers: dict[str, dict[object, int]] = {name: {} for name in TURNS}

    def waits(item: pytest.Item) -> bool:
        spec = getattr(item, "callspec", None)
        given = spec.params if spec else {}
        if given.get("delegated") in DELEGATED_BY_HAND:
            return True
        for name, groups in ALIKE.items():
            for group in groups:
                if given.get(name) in group and given[name] != group[SEED % len(group)]:
                    return True
        seen = [(n, numbers[n].setdefault(given[n], len(numbers[n]))) for n in TURNS if n in given]
        return any(number % TURNS[name] != SEED % TURNS[name] for name, number in seen)

    waiting = [waits(item) for item in items]
    config.hook.pytest_deselected(items=list(itertools.compress(items, waiting)))
    items[:] = [item for item, left in zip(items, waiting, strict=True) if not left]


class Workshop:
    """The folder of files, and the three environments that fill it."""

    def __init__(self, config: pytest.Config, folder: Path, models: tuple[str, ...]) -> None:
        self.config, self.folder, self.models = config, folder, models
        self.pairs = PAIRS

    def run(self, environment: str, script: str, *args: str) -> None:
        """Run one script in one environment, its progress on this terminal."""
        show(self.config, environment, script, *args)

    def prepare(self) -> None:
        """Fill the folder: references, files, results."""
        folder = str(self.folder)
        missing = [m for m in self.models if not (self.folder / m / "calls.npz").exists()]
        if missing:
            self.run("--host", "reference.py", folder, *missing)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self.lower, EXPORTERS, ("--host", "--executorch")))
        self.execute_all()

    def lowered_by_etx(self, model: str) -> Path:
        """Return the folder of a model with eager's calls and ETX's files, also out of turn."""
        folder = self.folder / model
        if not (folder / "calls.npz").exists():
            self.run("--host", "reference.py", str(self.folder), model)
        if not (folder / "etx.pte").exists():
            self.run("--host", "lower.py", "etx", str(self.folder), model)
        return folder

    def execute_all(self) -> None:
        """Run the files there are, both exporters' on both runtimes, ours on its own."""
        cells = {
            runtime: [
                f"{exporter}:{model}"
                for model in self.models
                for exporter in EXPORTERS
                if (exporter, runtime) in self.pairs
                and (self.folder / model / f"{exporter}.pte").exists()
            ]
            for runtime in RUNTIMES
        }
        names = [*self.models, *(f"{model}/many" for model in self.models)]
        own = [f"own:{name}" for name in names if (self.folder / name / "own.pte").exists()]
        with ThreadPoolExecutor(2) as pool:
            list(
                pool.map(
                    self.execute,
                    RUNTIMES,
                    ("--device", "--executorch"),
                    (cells["etx"] + own, cells["executorch"]),
                )
            )

    def lower(self, exporter: str, environment: str) -> None:
        """Write the files of an exporter that are not there."""
        left = left_out(self.config) if exporter == "executorch" else frozenset()
        todo = [m for m in self.models if m not in left and not self.lowered(exporter, m)]
        if todo:
            self.run(environment, "lower.py", exporter, str(self.folder), *todo)

    def execute(self, runtime: str, environment: str, cells: list[str]) -> None:
        """Run the files on a runtime; one that kills the process is noted, and the rest goes on."""
        while cells:
            try:
                self.run(environment, "run.py", runtime, str(self.folder), *cells)
                return
            except subprocess.CalledProcessError as death:
                left = [cell for cell in cells if not self.finished(runtime, cell)]
                exporter, model = left[0].split(":")
                note = f"the process died with {death.returncode}"
                (self.folder / model / f"{exporter}.{runtime}.error").write_text(note)
                cells = left[1:]

    def finished(self, runtime: str, cell: str) -> bool:
        """Tell whether a runtime has dealt with a file."""
        exporter, model = cell.split(":")
        stem = f"{exporter}.{runtime}"
        return any((self.folder / model / f"{stem}.{end}").exists() for end in ("npz", "error"))

    def lowered(self, exporter: str, model: str) -> bool:
        """Tell whether an exporter has dealt with a model already."""
        return (self.folder / model / f"{exporter}.json").exists()


def prepared(
    request: pytest.FixtureRequest,
    folder: Path,
    names: dict[str, str],
    pairs: tuple[tuple[str, str], ...] = PAIRS,
) -> Workshop:
    """Prepare what the chosen tests name in these parameters, formatted by their values."""
    specs = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = {
        name.format(s.params[param]): None
        for param, name in names.items()
        for s in specs
        if s and param in s.params
    }
    folder = request.config.getoption("--folder") or folder
    workshop = Workshop(request.config, folder, tuple(chosen))
    workshop.pairs = pairs
    with request.config.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
        workshop.prepare()
    return workshop


@pytest.fixture(scope="session")
def workshop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Prepare every chosen model once for the whole run."""
    pairs = pairs_of_models(request.config)
    return prepared(request, tmp_path_factory.mktemp("models"), {"model": "{}"}, pairs)


@pytest.fixture(scope="session")
def delegates(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Lower the chosen cases and models to XNNPACK and run them on both runtimes."""
    return delegated(
        request, tmp_path_factory, ("delegated", "lowering"), ("--host", "delegated.py")
    )


@pytest.fixture(scope="session")
def theirs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Lower the chosen models to XNNPACK with ExecuTorch and run them on both runtimes."""
    exporter = ("--executorch", "executorch_delegated.py")
    return delegated(request, tmp_path_factory, ("theirs_lowered",), exporter)


def delegated(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    parameters: tuple[str, ...],
    exporter: tuple[str, str],
) -> Workshop:
    """Run a script that writes an `xnnpack.pte` of each chosen name, and both runtimes on it."""
    specs = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = [spec.params.get(key) for spec in specs if spec for key in parameters]
    names = tuple(dict.fromkeys(name for name in chosen if name))
    folder = request.config.getoption("--folder") or tmp_path_factory.mktemp("delegated")
    workshop = Workshop(request.config, folder / "delegated", names)
    workshop.folder.mkdir(exist_ok=True)
    with request.config.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
        workshop.run(*exporter, str(workshop.folder), *names)
        written = [n for n in names if (workshop.folder / n / "xnnpack.pte").exists()]
        cells = [f"xnnpack:{name}" for name in written]
        with ThreadPoolExecutor(2) as pool:
            sides = ("--executorch", "--delegates")
            list(pool.map(workshop.execute, ("executorch", "etx"), sides, (cells, cells)))
    return workshop


@pytest.fixture(scope="session")
def integers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Quantize the chosen models, lower them with both exporters, run them on both runtimes."""
    specs = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = {s.params["quantized"]: None for s in specs if s and "quantized" in s.params}
    folder = request.config.getoption("--folder") or tmp_path_factory.mktemp("quantized")
    workshop = Workshop(request.config, folder, tuple(chosen))
    with request.config.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
        missing = [name for name in chosen if not (folder / name / "many" / "own.pte").exists()]
        if missing:
            workshop.run("--host", "quantized.py", str(folder), *missing)
        workshop.lower("executorch", "--executorch")
        workshop.execute_all()
    return workshop


@pytest.fixture(scope="session")
def trained_weights(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Workshop:
    """Quantize the chosen models and run them on both runtimes, with XNNPACK and without."""
    specs = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = (spec.params.get("recipe") for spec in specs if spec)
    names = tuple(dict.fromkeys(name for name in chosen if name))
    folder = request.config.getoption("--folder") or tmp_path_factory.mktemp("weights")
    workshop = Workshop(request.config, folder / "trained", names)
    workshop.folder.mkdir(exist_ok=True)
    with request.config.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
        workshop.run("--host", "trained_weights.py", str(workshop.folder), *names)
        for runtime, environment, files in (
            ("etx", "--device", ("etx", "shared")),
            ("etx", "--delegates", ("xnnpack",)),
            ("executorch", "--executorch", ("shared", "xnnpack")),
        ):
            workshop.execute(runtime, environment, [f"{f}:{n}" for n in names for f in files])
    return workshop


@pytest.fixture(scope="session")
def flows(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Prepare every chosen program with control flow, fixed and random, once for the whole run."""
    names = {"flow": "{}", "seed": "random{}"}
    return prepared(request, tmp_path_factory.mktemp("flows"), names)
