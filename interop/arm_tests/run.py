# SPDX-License-Identifier: BSD-3-Clause
"""Run ExecuTorch's tests of Arm operators on ETX: `run.py SITE-PACKAGES --json FILE [NAME...]`.

Writes what became of each case: an empty text where it passes, else the reason; what needs a
target or simulator that is not here begins with "left out".
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import sys
import warnings
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

HERE = Path(__file__).parent
sys.path[:0] = [
    str(HERE.parent / "exporter_tests"),
    str(HERE.parents[1] / "packages" / "etx-backend-arm" / "tests"),
]

import aliases  # noqa: E402
import pipelines  # noqa: E402
from etx_backend_arm import quantizer  # noqa: E402
from etx_quant import QuantizationConfig, get_symmetric_quantization_config  # noqa: E402

ELSEWHERE = {
    "custom_shader_lowering": "it compiles Vulkan shaders by glslc",
    "mxfp_conv2d": "MXFP, of a draft of TOSA and VGF alone",
}
ARM = "executorch.backends.arm"
OPS = f"{ARM}.test.ops"
ARM_QUANTIZER = SimpleNamespace(
    TOSAQuantizer=quantizer.TOSAQuantizer,
    QuantizationConfig=QuantizationConfig,
    get_symmetric_quantization_config=get_symmetric_quantization_config,
    get_symmetric_a16w8_quantization_config=quantizer.get_symmetric_a16w8_quantization_config,
    get_symmetric_a8w4_quantization_config=quantizer.get_symmetric_a8w4_quantization_config,
)


def parametrize(name: str, data: dict[str, Any], *_: Any, **__: Any) -> Any:
    """Stand for the suite's own: what it expects to fail on ExecuTorch is tried."""
    return pytest.mark.parametrize(name, [pytest.param(v, id=k) for k, v in data.items()])


def unchanged(function: Any = None) -> Any:
    """Stand for marks that depend on ExecuTorch's simulator, with parentheses or without."""
    return unchanged if function is None else function


COMMON = SimpleNamespace(
    Any=Any,
    parametrize=parametrize,
    XfailIfNoCorstone300=unchanged,
    XfailIfNoCorstone300_u65=unchanged,
    XfailIfNoCorstone320=unchanged,
    SkipIfNoModelConverter=unchanged,
    XfailfNoVKMLEmulationLayer=unchanged,
    is_aarch64_host=lambda: False,
)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a tensor whose last dimension is dense."""
    return torch.empty(shape, device="meta").stride()


class Nothing:
    """Stand for a pass of theirs whose work ETX's partitioner does: indices of 32 bits."""


def stand_in(wheel: Path) -> None:
    """Let the tests be imported over ETX."""
    options = SimpleNamespace(is_option_enabled=lambda option: option == "tosa_ref_model")
    sys.modules["conftest"] = options  # type: ignore[assignment]
    more: dict[str, Any] = {
        "backends.arm._passes.InsertInt32CastsAfterInt64PlaceholdersPass": Nothing,
        "backends.arm.common.as_strided_utils.contiguous_strides": contiguous_strides,
        "backends.arm.constants.MAX_RANK": 6,
        "backends.arm.quantizer.quantization_config.QuantizationConfig": QuantizationConfig,
        "backends.arm.test.common": COMMON,
        "backends.arm.quantizer.arm_quantizer": ARM_QUANTIZER,
    }
    for name, value in vars(ARM_QUANTIZER).items():
        more[f"backends.arm.quantizer.{name}"] = value
        more[f"backends.arm.quantizer.arm_quantizer.{name}"] = value
    aliases.install(wheel, more)
    sys.modules[f"{ARM}.test.common"] = COMMON  # type: ignore[assignment]
    for name in ("arm_tester", "test_pipeline"):
        sys.modules[f"{ARM}.test.tester.{name}"] = pipelines
    sys.modules[f"{ARM}.quantizer.arm_quantizer"] = ARM_QUANTIZER  # type: ignore[assignment]


def cases(function: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the parameters of a test, with what pytest would call them."""
    rows: list[tuple[list[str], dict[str, Any]]] = [([], {})]
    for mark in getattr(function, "pytestmark", ()):
        if mark.name != "parametrize":
            continue
        names, values = mark.args[0], mark.args[1]
        keys = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
        grown = []
        for labels, row in rows:
            for i, value in enumerate(values):
                held = value.values if hasattr(value, "values") and hasattr(value, "id") else None
                plain = held if held is not None else (value if len(keys) > 1 else (value,))
                label = getattr(value, "id", None) or str(i)
                grown.append(([*labels, label], row | dict(zip(keys, plain, strict=True))))
        rows = grown
    for labels, row in rows:
        yield "-".join(labels), row


def called(function: Any, row: dict[str, Any]) -> str:
    """Call a test; return an empty text, or what became of it."""
    torch.manual_seed(0)
    try:
        function(**row)
    except pipelines.LeftOutError as error:
        return f"left out: {error}"
    except Exception as error:
        first = str(error).strip().splitlines() or [""]
        return f"{type(error).__name__}: {' '.join(first)[:300]}"
    return ""


def outcomes(
    wheel: Path, only: list[str], match: str, known: Container[str]
) -> Iterator[tuple[str, str]]:
    """Call the tests of the folder that have ``match`` in their name; yield what became of each.

    Cases that are ``known`` are not called.
    """
    for path in sorted(wheel.joinpath(*OPS.split(".")).glob("test_*.py")):
        name = path.stem.removeprefix("test_")
        if only and name not in only:
            continue
        if name in ELSEWHERE:
            yield name, f"left out: {ELSEWHERE[name]}"
            continue
        try:
            module = importlib.import_module(f"{OPS}.{path.stem}")
        except Exception as error:
            yield name, f"cannot be imported: {type(error).__name__}: {str(error)[:200]}"
            continue
        for key, function in list(vars(module).items()):
            if key.startswith("test_") and match in key and callable(function):
                for label, row in cases(function):
                    case = f"{name}.{key}[{label}]"
                    if case not in known:
                        yield case, called(function, row)


def kind(why: str) -> str:
    """Return what became of a case in a word or two."""
    return "pass" if not why else "left out" if why.startswith("left out") else "do not pass"


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, help="the site-packages that ExecuTorch lies in")
    parser.add_argument("names", nargs="*", help="such as add, conv2d: files of the folder")
    parser.add_argument("--match", default="", help="only tests with this in their name: tosa_FP")
    parser.add_argument("--json", type=Path, required=True, help="file to write")
    parser.add_argument("--resume", action="store_true", help="call only what is not in FILE yet")
    options = parser.parse_intermixed_args()
    os.environ.setdefault("PYTHONHASHSEED", "0")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    stand_in(options.wheel)
    found: dict[str, str] = {}
    if options.resume and options.json.exists():
        found = json.loads(options.json.read_text(encoding="utf-8"))
    for name, why in outcomes(options.wheel, options.names, options.match, frozenset(found)):
        found[name] = why
        print(f"{name}: {why or 'passes'}", flush=True)
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(dict(Counter(map(kind, found.values()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
