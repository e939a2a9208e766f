# SPDX-License-Identifier: BSD-3-Clause
"""Compile PyTorch's samples for target `executorch`: ``<folder>/<part>.samples``, pickle by pickle.

usage: write.py FOLDER PART OF [--after N] [--most N] [--drawn N --seed N] [--only NAME]
    [--dtypes NAME...]

Each worker takes every OF-th pair of an operator and a dtype. A sample becomes a file with its
inputs and what eager gives, or a reason why there is none. Lines of JSON tell the driver of each
when it is begun and what it became; where a process died, the next goes on `--after` that one.
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_schema import EtxError
from torch import nn
from torch.export import ExportedProgram
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

DTYPES = (
    "float32",
    "int64",
    "bool",
    "float16",
    "uint8",
    "int32",
    "float64",
    "complex64",
    "bfloat16",
    "int8",
    "int16",
)
SECONDS = 60
UNSET = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")


class UnsuitedError(Exception):
    """A sample that is not a call with tensors as a program's inputs."""


class Calls(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Call the function."""
        return self.function(*inputs)


class Sample:
    """A call of an operator whose tensors are inputs, contiguous ones."""

    def __init__(self, op: Any, sample: Any) -> None:
        self.op = op
        leaves, self.spec = tree_flatten((sample.input, sample.args, sample.kwargs))
        self.leaves = [_plain(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.inputs = tuple(leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor))

    def __call__(self, *tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        filled = [next(given) if isinstance(x, torch.Tensor) else x for x in self.leaves]
        first, args, kwargs = tree_unflatten(filled, self.spec)
        return self.op.op(first, *args, **kwargs)

    def expected(self) -> list[torch.Tensor]:
        """Return what eager gives for fresh copies of the inputs."""
        result = self(*(x.clone() for x in self.inputs))
        found = [x for x in tree_flatten(result)[0] if x is not None]
        return [torch.as_tensor(x).detach().clone() for x in found]

    def exported(self) -> ExportedProgram:
        """Return the call as a program."""
        return torch.export.export(Calls(self), self.inputs)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout is not torch.strided:
        raise UnsuitedError(f"a tensor of layout {tensor.layout}")
    plain = torch.empty(tensor.shape, dtype=tensor.dtype)
    return plain.copy_(tensor.detach())


def pairs(names: list[str], only: str) -> list[tuple[Any, torch.dtype]]:
    """Return the operators and the dtypes they are sampled with."""
    dtypes = [getattr(torch, name) for name in names]
    ops = [op for op in op_db if only in ("", op.name)]
    return [(op, dtype) for dtype in dtypes for op in ops if dtype in op.dtypes]


def samples(op: Any, dtype: torch.dtype, most: int) -> list[tuple[int, Any]]:
    """Return PyTorch's samples by number, at most so many, spread evenly."""
    torch.manual_seed(0)
    with torch.no_grad():
        found = list(islice(op.sample_inputs("cpu", dtype), 10_000))
    if most and len(found) > most:
        return [(i, found[i]) for i in (k * len(found) // most for k in range(most))]
    return list(enumerate(found))


def named(op: Any, dtype: torch.dtype, number: int, given: Any) -> dict[str, Any]:
    """Return what a sample is called."""
    return {
        "op": f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name,
        "dtype": str(dtype).removeprefix("torch."),
        "number": number,
        "text": given.summary()[:300],
    }


def entry(op: Any, given: Any) -> dict[str, Any]:
    """Compile one sample."""
    begin = time.perf_counter()
    signal.alarm(SECONDS)
    try:
        row = compiled(Sample(op, given), op.name in UNSET)
    except TimeoutError:
        row = {"state": "slow"}
    except UnsuitedError as error:
        row = {"state": "not exported", "why": str(error)}
    finally:
        signal.alarm(0)
    return row | {"seconds": time.perf_counter() - begin}


def compiled(sample: Sample, unset: bool) -> dict[str, Any]:
    """Return the file of a sample with eager's results, or why there is none."""
    try:
        torch.manual_seed(1)
        expected = sample.expected()
        torch.manual_seed(2)
        again = sample.expected()
        program = sample.exported()
    except TimeoutError:
        raise
    except Exception as error:
        return {"state": "not exported", "why": f"{type(error).__name__}: {error}"[:300]}
    try:
        config = ExecutorchBackendConfig(target="executorch")
        file = bytes(to_edge(program).to_executorch(config).buffer)
    except TimeoutError:
        raise
    except EtxError as error:
        return {"state": "refused", "why": str(error)}
    except Exception as error:
        return {"state": "broken", "why": f"{type(error).__name__}: {error}"}
    random_ = any(
        not torch.equal(a, b) and not _nan(a, b) for a, b in zip(expected, again, strict=True)
    )
    return {
        "state": "written",
        "file": file,
        "inputs": list(sample.inputs),
        "expected": expected,
        "values": not (unset or random_),
    }


def _nan(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)


def chosen(options: argparse.Namespace) -> Iterator[tuple[Any, torch.dtype, int, Any]]:
    """Yield the samples of this worker: operator, dtype, number and arguments."""
    found = pairs(options.dtypes, options.only)
    if options.drawn:
        draw = random.Random(options.seed)
        for op, dtype in draw.sample(found, options.drawn)[options.part :: options.of]:
            given = samples(op, dtype, 20)
            if given:
                yield op, dtype, *draw.choice(given)
        return
    for op, dtype in found[options.part :: options.of]:
        for number, given in samples(op, dtype, options.most):
            yield op, dtype, number, given


def _late(*_: object) -> None:
    raise TimeoutError


def main() -> None:
    """Write the samples of this worker, each as soon as it is compiled."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("part", type=int)
    parser.add_argument("of", type=int)
    parser.add_argument("--after", type=int, default=-1)
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--drawn", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES))
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, _late)
    torch.set_num_threads(1)
    with (options.folder / f"{options.part}.samples").open("ab") as stream:
        for i, (op, dtype, number, given) in enumerate(chosen(options)):
            if i <= options.after:
                continue
            row = named(op, dtype, number, given)
            print(json.dumps([i, "begun", row]), flush=True)
            row |= entry(op, given)
            stream.write(pickle.dumps((i, row)))
            stream.flush()
            print(json.dumps([i, row["state"], row.get("why", "")]), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
