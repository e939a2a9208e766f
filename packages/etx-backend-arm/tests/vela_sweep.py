# SPDX-License-Identifier: BSD-3-Clause
"""One-operator graphs, drawn: whether the partitioner takes them and whether Vela does.

    python tests/vela_sweep.py COUNT [SEED [TARGET ...]]

prints for each target how many both take, both refuse, only we take (none) and only Vela takes.
What both take runs on the simulator, the U85 excepted: "wrong" is another result than the
reference model's (none), "stopped" what the simulator refuses.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import etx_runtime
import numpy as np
import reference_model
import torch
from etx_backend_arm.ethos_u.backend import INTEGERS, EthosUPartitioner
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.ethos_u.vela import compile_graph
from etx_backend_arm.lowering import lower_program
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import TOSAQuantizer
from etx_exir import EdgeProgramManager, to_edge_transform_and_lower
from etx_exir.errors import BackendError
from etx_quant import quantize, quantize_edges
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from integers import Between, integers
from lowered import delegates, lower
from torch import Tensor, nn

F = torch.nn.functional
FAMILIES = {"u55": "ethos-u55-128", "u65": "ethos-u65-256", "u85": "ethos-u85-256"}
Case = tuple[str, nn.Module, tuple[Tensor, ...]]
Draw = Callable[..., Any]


def sizes(least: int, most: int, *large: int) -> st.SearchStrategy[int]:
    return st.integers(least, most) | st.sampled_from((most, *large))


SIDE, CHANNELS, STRIDE = sizes(4, 20, 70), sizes(1, 20, 40), st.integers(1, 5)


def layer(draw: Draw) -> Case:
    """A convolution of any kind; quantized as the user's are."""
    kind = draw(st.sampled_from(("conv", "depthwise", "transposed")))
    channels, outputs = draw(CHANNELS), draw(CHANNELS)
    kernel = (draw(sizes(1, 6, 65)), draw(sizes(1, 6, 66)))
    stride, dilation = (draw(STRIDE), draw(STRIDE)), draw(st.integers(1, 3))
    shape = (draw(st.sampled_from((1, 1, 3))), channels, draw(SIDE), draw(SIDE))
    if kind == "transposed":
        made: nn.Module = nn.ConvTranspose2d(channels, outputs, kernel, stride)
    else:
        groups = channels if kind == "depthwise" else 1
        count = channels * draw(st.integers(1, 2)) if groups > 1 else outputs
        padding = tuple(dilation * (each - 1) for each in kernel)
        made = nn.Conv2d(channels, count, kernel, stride, padding, dilation, groups)
    torch.manual_seed(0)
    batches = [(torch.randn(shape),) for _ in range(2)]
    model = quantize(made.eval(), batches, TOSAQuantizer())
    quantize_edges(model)
    described = f"{kind} {channels}>{outputs} {kernel} {stride} {dilation} {shape}"
    return described, model, (integers(*shape),)


def between(name: str, function: Callable[..., Any], *shapes: tuple[int, ...]) -> Case:
    inputs = tuple(integers(*shape, seed=i) for i, shape in enumerate(shapes))
    return f"{name} {shapes}", Between(function, *inputs).eval(), inputs


def pool(draw: Draw) -> Case:
    kernel = (draw(sizes(1, 9, 257)), draw(sizes(1, 9)))
    stride = (draw(STRIDE), draw(STRIDE))
    padding = tuple(draw(st.integers(0, each // 2)) for each in kernel)
    side = (max(draw(SIDE), kernel[0]), max(draw(SIDE), kernel[1]))
    shape = (draw(st.sampled_from((1, 1, 2))), draw(CHANNELS), *side)
    pooled = draw(st.sampled_from((F.avg_pool2d, F.max_pool2d)))
    name = f"{pooled.__name__} {kernel} {stride} {padding}"
    return between(name, lambda x: pooled(x, kernel, stride, padding), shape)


def shapes(draw: Draw, least: int = 1) -> tuple[int, ...]:
    rank = draw(st.integers(least, 5))
    return tuple(draw(sizes(1, 9)) for _ in range(rank))


def pair(draw: Draw) -> Case:
    kinds = (torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum)
    function, shape = draw(st.sampled_from(kinds)), shapes(draw)
    other = tuple(1 if draw(st.booleans()) else size for size in shape)[draw(st.integers(0, 1)) :]
    return between(function.__name__, function, shape, other or (1,))


def reduction(draw: Draw) -> Case:
    shape = shapes(draw, 2)
    dim = draw(st.integers(0, len(shape) - 1))
    kind = draw(st.sampled_from((torch.mean, torch.sum, torch.amax, torch.amin, torch.softmax)))
    return between(f"{kind.__name__} {dim}", lambda x: kind(x, dim), shape)


def move(draw: Draw) -> Case:
    shape = shapes(draw, 2)
    axes = draw(st.permutations(range(len(shape))))
    first = axes[0]
    steps = draw(st.integers(1, 3))
    kinds: dict[str, Callable[[Tensor], Tensor]] = {
        f"permute {axes}": lambda x: x.permute(axes),
        f"cat {first}": lambda x: torch.cat([x, x], first),
        f"slice {first} {steps}": lambda x: x[(slice(None),) * first + (slice(0, None, steps),)],
        f"flip {first}": lambda x: x.flip(first),
        "pad": lambda x: F.pad(x, (1, 2, 0, 1), value=0.5),
        "reshape": lambda x: x.reshape(-1),
        "repeat": lambda x: x.repeat(*(2 if i == first else 1 for i in range(len(shape)))),
    }
    name = draw(st.sampled_from(sorted(kinds)))
    return between(name, kinds[name], shape)


def other(draw: Draw) -> Case:
    shape = (1, draw(CHANNELS), draw(SIDE), draw(SIDE))
    batch, rows = draw(sizes(1, 4)), draw(sizes(1, 9, 70))
    factor = draw(st.integers(2, 4))
    kinds = [
        between("bmm", torch.bmm, (batch, rows, 12), (batch, 12, draw(CHANNELS))),
        between("sigmoid", torch.sigmoid, shapes(draw)),
        between(f"nearest {factor}", lambda x: F.interpolate(x, scale_factor=factor), shape),
        between(
            "bilinear",
            lambda x: F.interpolate(x, scale_factor=factor, mode="bilinear"),
            shape,
        ),
        between("layer_norm", lambda x: F.layer_norm(x, shape[-1:]), shape),
    ]
    return kinds[draw(st.integers(0, len(kinds) - 1))]


@st.composite
def cases(draw: Draw) -> Case:
    return draw(st.sampled_from((layer, pool, pair, reduction, move, other)))(draw)


def vela_takes(graph: bytes, spec: EthosUCompileSpec) -> bool:
    try:
        compile_graph(graph, spec)
    except BackendError:
        return False
    return True


def verdict(case: Case, spec: EthosUCompileSpec) -> str:
    """Return who takes a case: `both`, `neither`, `only etx`, `only vela`; `none` has no TOSA."""
    _, model, inputs = case
    if len(whole := delegates(lower(model, *inputs, partitioner=TOSAPartitioner(INTEGERS)))) != 1:
        return "none"
    partitioner = EthosUPartitioner(spec)
    program = torch.export.export(model, inputs)
    try:
        edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    except BackendError:
        return "only etx"
    if delegates(edge.exported_program("forward")):
        return simulated(edge, inputs, spec.target)
    return "only vela" if vela_takes(whole[0].processed_bytes, spec) else "neither"


def simulated(edge: EdgeProgramManager, inputs: tuple[Tensor, ...], target: str) -> str:
    """Return `both` where the simulator has the reference model's results."""
    if target.startswith("ethos-u85"):
        return "both"
    (delegate,) = delegates(edge.exported_program("forward"))
    graph = lower_program(delegate.original_module, narrow_tables=True).serialize()
    arrays = [each.numpy() for each in inputs]
    try:
        made = etx_runtime.load(bytes(edge.to_executorch().buffer))(*arrays)
    except (etx_runtime.LoadError, etx_runtime.ExecutionError) as error:
        return f"stopped: {error}"
    actual = made if isinstance(made, list) else [made]
    pairs = zip(actual, reference_model.run(graph, *arrays), strict=True)
    return "both" if all(np.array_equal(a, b) for a, b in pairs) else "wrong"


def sweep(target: str, count: int, first: int = 0) -> tuple[Counter[str], dict[str, list[str]]]:
    """Draw cases; return how many have each verdict, and which they are."""
    spec = EthosUCompileSpec(FAMILIES.get(target, target))
    found: dict[str, list[str]] = {}

    @seed(first)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def draw_all(case: Case) -> None:
        found.setdefault(verdict(case, spec), []).append(case[0])

    draw_all()
    return Counter({key: len(each) for key, each in found.items()}), found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    number, chosen, *targets = [*sys.argv[1:], "0"][: max(len(sys.argv) - 1, 2)]
    for each in targets or FAMILIES:
        counted, named = sweep(each, int(number), int(chosen))
        print(each, f"seed {chosen}", dict(counted))
        for key, names in named.items():
            if key not in ("both", "neither", "none"):
                print("".join(f"  {key}: {name}\n" for name in names), end="", flush=True)
