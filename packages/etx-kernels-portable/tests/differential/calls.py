# SPDX-License-Identifier: BSD-3-Clause
"""One drawn call: eager first, then the kernel, and what came of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from harness import PLUGIN, Kernel, KernelError, Out, Slot, dim_order_of, strides_of
from intercept import out_like, summary
from torch.utils._pytree import tree_leaves

from differential import elementwise, layers, movement, others, reductions  # noqa: F401
from differential.compare import difference
from differential.operators import KERNELS, eager_of, exact
from differential.registry import DRAWINGS, UNDRAWN
from differential.values import Draw

ROUNDS = re.compile(
    r"aten::(a?(cos|sin|tan)h?|atan2|hypot|erfc?|exp|expm1|log\w*|r?sqrt|sigmoid|silu|pow|gelu|elu"
    r"|_(log_)?softmax|glu|\w*sum|mean|(cum)?prod|var|var_mean|_[cp]dist_forward|_fft_\w+|native_\w+"
    r"|_native_\w+|logit|arange"
    r"|avg_pool2d|_adaptive_\w+|convolution\w*|mm|bmm|addmm|linear|upsample_bi\w+|_upsample\w+"
    r"|grid_sampler_2d|max_pool2d_with_indices_backward|scatter_(add|reduce)|index_put_?)\."
    r"|quantized_decomposed::"
)
"""Kernels whose order of computation, or whose functions, eager does not fix."""
EAGER_ERRORS = (
    RuntimeError,
    ValueError,
    IndexError,
    TypeError,
    NotImplementedError,
    ArithmeticError,
    AssertionError,
)
MOST_ROOM = 1 << 20
DRAWN = tuple(sorted((k for k in KERNELS if k.name not in UNDRAWN), key=lambda k: k.name))
OUTCOMES = {
    "equal": "both compute the same",
    "refused": "both refuse",
    "lenient": "eager refuses, the kernel computes",
    "unlisted": "eager computes, the kernel refuses a dtype that its row does not state",
    "differs": "results differ",
    "strict": "eager computes, the kernel refuses",
    "aborted": "eager ended the process",
    "crashed": "the kernel ended the process",
}


@dataclass
class Call:
    """A kernel and what it is called with."""

    kernel: Kernel
    args: list[Any]
    dtype: torch.dtype | None = None
    outcome: str = ""
    detail: str = ""
    expected: list[Any] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [a for a in tree_leaves(self.args) if isinstance(a, torch.Tensor)]

    def text(self) -> str:
        given = ", ".join(brief(a) for a in self.args)
        to = f" -> {self.dtype}" if self.dtype else ""
        return f"{self.kernel.name}({given}){to}"

    def run(self, begin: Callable[[str], None]) -> None:
        """Fill in outcome and detail; `begin` is told who computes."""
        begin("eager")
        eager, refused = eager_of(self.kernel.name), ""
        try:
            self.expected = eager(self.args, self.dtype)
        except EAGER_ERRORS as error:
            refused = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        begin("kernel")
        try:
            self.results = PLUGIN.call(self.kernel.name, *self.args, *self.outs(refused))
        except KernelError as error:
            self.detail = f"{error.error}: {error.reason}"
            unlisted = any(not self.kernel.lists(t.dtype) for t in self.tensors + self.floats())
            named = "unlisted" if unlisted else "strict"
            self.outcome = "refused" if refused else named
            return
        if refused:
            self.outcome, self.detail = "lenient", refused
            return
        self.judge()

    def floats(self) -> list[torch.Tensor]:
        return [e for e in self.expected if isinstance(e, torch.Tensor)]

    def outs(self, refused: str) -> list[Any]:
        """What takes the results; a guess where eager has none."""
        parameters = self.kernel.parameters[len(self.args) :]
        written = len(eager_of(self.kernel.name).written)
        if not refused and written != 1:
            expected = self.expected[written:]
        else:
            like = next(iter(self.tensors), torch.zeros([]))
            expected = [like] * len(parameters)
        if parameters and parameters[-1].letter == "L":
            return [[self.out(e) for e in expected]]
        made = [self.out(e) if isinstance(e, torch.Tensor) else Slot() for e in expected]
        return [Slot() if p.letter == "v" else m for p, m in zip(parameters, made, strict=False)]

    def out(self, expected: torch.Tensor) -> Out:
        """What takes a result: in the dim order that is asked for, or that of self where strides
        leave it open."""
        made = out_like(expected)
        if math.prod(size + 1 for size in expected.shape) > MOST_ROOM:
            made.slack = 0
        asked = self.args[-1] if self.kernel.name.startswith("dim_order_ops::") else None
        if self.tensors and asked is None:
            asked = dim_order_of(self.tensors[0])
        if asked is not None and len(asked) == expected.dim():
            reference = strides_of(list(expected.shape), asked)
            own = zip(expected.stride(), reference, expected.shape, strict=True)
            if expected.numel() == 0 or all(a == b or n == 1 for a, b, n in own):
                made.dim_order = list(asked)
        return made

    def judge(self) -> None:
        self.outcome = "equal"
        truth: list[Any] | None = None
        same_bits = not ROUNDS.match(self.kernel.name)
        for i, (actual, want) in enumerate(zip(self.results, self.expected, strict=True)):
            found = difference(actual, want, None, same_bits)
            if found is not None and isinstance(want, torch.Tensor) and not same_bits:
                truth = truth or exact(self.kernel, self.args, self.dtype) or [None] * 9
                found = difference(actual, want, truth[i], scale=scale_of(self.tensors))
            if found is not None:
                self.outcome, self.detail = "differs", f"result {i}: {found}"
                return


def scale_of(tensors: list[torch.Tensor]) -> float:
    """The size that sums of products of these may reach on their way."""
    scale = 1.0
    for tensor in tensors:
        finite = tensor.abs().nan_to_num(0, 0, 0) if tensor.dtype.is_floating_point else tensor
        if tensor.numel() and not tensor.is_complex() and tensor.dtype != torch.bool:
            scale *= max(1.0, float(finite.double().abs().max()))
        elif tensor.numel() and tensor.is_complex():
            scale *= max(1.0, float(tensor.abs().nan_to_num(0, 0, 0).max()))
    return scale


def brief(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        odd = "" if value.is_contiguous() else "^"
        few = f"={value.flatten().tolist()}" if value.numel() <= 3 else ""
        return summary(value) + odd + few
    return summary(value)


def draw(seed: int, index: int, name: str | None = None) -> Call:
    """The call of this number; kernels take turns, unless one is named."""
    kernel = PLUGIN.kernels[name] if name else DRAWN[index % len(DRAWN)]
    d = Draw(f"{seed}/{index}", kernel)
    args = DRAWINGS[kernel.name](d)
    takes = eager_of(kernel.name).takes_dtype
    return Call(kernel, args, d.dtype() if takes else None)
