# SPDX-License-Identifier: BSD-3-Clause
"""How many TOSA operators networks take, constants left out, and in how many delegates.

    python benchmarks/economy.py [NETWORK ...]

Needs etx-backend-arm[aot]; torchvision's networks where its code is installed, `encoder`, `lstm`
and `unet` of the tests always. Weights are random; batch norms are settled.
"""

from __future__ import annotations

import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import TOSAQuantizer
from etx_quant import QuantizationError, quantize, quantize_edges
from lowered import delegates, lower, operators
from test_networks import NETWORKS

Network = tuple[Callable[[], nn.Module], tuple[int, ...]]
IMAGE = (1, 3, 96, 96)


def networks() -> dict[str, Network]:
    """Return what makes each network, and the shape of its input."""
    found: dict[str, Network] = {name: row[:2] for name, row in NETWORKS.items()}
    # torchvision's compiled operators belong to one torch; only its Python code is used.
    sys.modules["torchvision._meta_registrations"] = types.ModuleType("registrations")
    try:
        from torchvision import models
    except ImportError:
        return found
    for name in ("mobilenet_v2", "mobilenet_v3_small", "resnet18"):
        found[name] = (getattr(models, name), IMAGE)
    return found


def count(network: Network, profile: str) -> tuple[int, Counter[str]]:
    """Return the number of delegates and of operators in them."""
    create, shape = network
    torch.manual_seed(0)
    model = create().train()
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(4, *shape[1:]))
        model.eval()
        x = torch.randn(shape)
        if profile == "INT":
            model = quantize(model, [(torch.randn(shape),) for _ in range(3)], TOSAQuantizer())
            quantize_edges(model)
            x = torch.randint(-128, 128, shape, dtype=torch.int8)
        spec = TosaCompileSpec(f"TOSA-1.0+{profile}")
        made = delegates(lower(model, x, partitioner=TOSAPartitioner(spec)))
    return len(made), Counter(op.name for d in made for op in operators(d.processed_bytes))


def main(names: list[str]) -> None:
    """Print a row for each network and profile."""
    known = networks()
    for name in names or known:
        for profile in ("FP", "INT"):
            try:
                number, found = count(known[name], profile)
            except QuantizationError as error:
                print(f"{name:20} {profile:4} {error}")
                continue
            rescales = found["RESCALE"]
            row = f"{found.total():4} operators, {rescales:3} RESCALE, {number} delegate(s)"
            print(f"{name:20} {profile:4} {row}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
