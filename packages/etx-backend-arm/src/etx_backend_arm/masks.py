# SPDX-License-Identifier: BSD-3-Clause
"""Attention as its products, ``matmul(softmax(matmul(q, k') * s + m), v)``, and masks as integers
hold them: ``softmax(x + m)``, where ``m`` is 0 or very low,
as ``softmax(x + h)`` with ``h`` 0 or HIDDEN, or, where the mask comes when the program runs, as
``softmax(masked_fill(x, m, HIDDEN))``.

What a mask hides has no part in a softmax, however low it is; an infinity, the least float32 or
-10,000 in the range of the scores would leave no integers for those that have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import torch
from etx_quant.constants import add_constant, computed, constants
from etx_quant.rows import HIDDEN
from torch import Tensor
from torch.fx import GraphModule, Node

from etx_backend_arm.rewrites import onto, rewrite
from etx_backend_arm.writer import Writer

__all__ = ["rewrite_attention"]

aten = torch.ops.aten
LOW = -100.0
"""What is so low beside others has no part in a softmax: a hundred is the least that masks use."""
MOST_NUMBERS = 2**24
"""Larger constants are not computed."""
MOVES = (
    aten.alias.default,
    aten.clone.default,
    aten.contiguous.default,
    aten.detach.default,
    aten.expand.default,
    aten.permute.default,
    aten.reshape.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.squeeze.dim,
    aten.transpose.int,
    aten.unsqueeze.default,
    aten.view.default,
)
INPLACE: dict[Any, Any] = {
    aten.add_.Tensor: aten.add.Tensor,
    aten.masked_fill_.Scalar: aten.masked_fill.Scalar,
    aten.mul_.Tensor: aten.mul.Tensor,
}
ZEROS = (aten.full_like.default, aten.zeros_like.default)
SUMS = (aten.add.Tensor, aten.sub.Tensor)
CHOICES = (aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.self)


class Apart(NamedTuple):
    """A value as what is added and what is hidden: None is nothing, a tensor a constant."""

    rest: Node | None
    hidden: Node | Tensor | None = None


class MaskWriter(Writer):
    """Adds operators in the place of a node, and knows the graph's constants."""

    @cached_property
    def model(self) -> GraphModule:
        """Return the model."""
        model = self.node.graph.owning_module
        assert model is not None
        return model

    @cached_property
    def constants(self) -> set[Node]:
        """Return the nodes that depend on constants alone."""
        return constants(self.model)


def rewrite_attention(model: GraphModule, is_taken: Callable[[Node], bool]) -> None:
    """Rewrite attention, and what masks in front of a softmax, for which ``is_taken``."""
    rewrite(model, is_taken, ROWS, MaskWriter)


def _attention(w: MaskWriter) -> None:
    """``matmul(softmax(mask(matmul(q, k') * s)), v)``."""
    given = w.given
    query, key, value = given["query"], given["key"], given["value"]
    sizes = [each.meta["val"].shape[-2] for each in (query, key)]
    if given["dropout_p"] or not all(isinstance(n, int) for n in sizes):
        return
    if given.get("enable_gqa"):
        groups = query.meta["val"].shape[-3] // key.meta["val"].shape[-3]
        key, value = (
            w.call(aten.repeat_interleave.self_int, each, groups, -3) for each in (key, value)
        )
    scale = given["scale"] or query.meta["val"].shape[-1] ** -0.5
    scores = w.call(aten.matmul.default, query, w.call(aten.transpose.int, key, -2, -1))
    scores = w.call(aten.mul.Tensor, scores, float(scale))
    mask = given["attn_mask"]
    if given["is_causal"]:
        scores = _filled(w, scores, torch.ones(sizes, dtype=torch.bool).tril().logical_not())
    elif mask is not None and mask.meta["val"].dtype == torch.bool:
        scores = _filled(w, scores, _turned(w, _truth(w, mask)))
    elif mask is not None:
        scores = w.call(aten.add.Tensor, scores, mask)
    w.done(w.call(aten.matmul.default, w.call(aten.softmax.int, scores, -1), value))


def _masked(w: MaskWriter) -> None:
    """Let what is in front of a softmax say what is hidden."""
    x = _settled(w.given["self"])
    if not x.meta["val"].is_floating_point() or _is_hiding(x):
        return
    rest, hidden = _apart(w, x)
    if rest is not None and hidden is not None:
        rest = _whole(w, rest, x)
        w.done(w.call(w.node.target, _filled(w, rest, hidden), *list(w.given.values())[1:]))


def _settled(node: Node) -> Node:
    """Return ``node`` as an operator that makes a value where it writes what nothing else reads."""
    source = node.args[0] if node.target in INPLACE else None
    if not isinstance(source, Node) or not _is_made(source) or len(source.users) > 1:
        return node
    with node.graph.inserting_before(node):
        made: Node = node.graph.call_function(INPLACE[node.target], node.args, node.kwargs)
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    node.graph.erase_node(node)
    return made


def _is_made(node: Node) -> bool:
    """Tell whether an operator makes a value of its own, not a view of another."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    return all(each.alias_info is None for each in target._schema.returns)


def _is_hiding(node: Node) -> bool:
    """Tell whether a value is masked as it shall be."""
    return node.target is aten.masked_fill.Scalar and bool(node.args[2] == HIDDEN)


def _filled(w: MaskWriter, x: Node, hidden: Node | Tensor) -> Node:
    if isinstance(hidden, Node):
        return w.call(aten.masked_fill.Scalar, x, hidden, HIDDEN)
    numbers = torch.zeros(hidden.shape).masked_fill(hidden, HIDDEN)
    return w.call(aten.add.Tensor, x, add_constant(w.model, "mask", numbers, x.meta["val"]))


def _apart(w: MaskWriter, node: Node) -> Apart:
    held = _value(w, node)
    if held is not None:
        return _constant(w, node, held)
    node = _settled(node)
    target, first = node.target, node.args[0] if node.args else None
    if target in CHOICES:
        return _chosen(w, node)
    if not isinstance(first, Node):
        return Apart(node)
    if target in ZEROS and not any(node.args[1:2]):
        return Apart(None)
    if target in MOVES:
        return _moved(w, node, first)
    if target is aten.masked_fill.Scalar and _is_low(node.args[2]):
        return _more(w, _apart(w, first), _truth(w, _operand(node, 1)))
    if target is aten.mul.Tensor and _is_truth(first) and _is_low(node.args[1], HIDDEN):
        return Apart(None, _as_truth(w, first))
    if target not in SUMS or node.kwargs or not isinstance(node.args[1], Node):
        return Apart(node)
    if target is aten.add.Tensor:
        return _sum(w, *(_apart(w, _operand(node, i)) for i in (0, 1))) or Apart(node)
    return _difference(w, _apart(w, first), node.args[1]) or Apart(node)


def _moved(w: MaskWriter, node: Node, source: Node) -> Apart:
    rest, hidden = _apart(w, source)
    if hidden is None:
        return Apart(node)
    if isinstance(hidden, Tensor):
        whole = hidden.expand(source.meta["val"].shape)
        hidden = _computed(node.target, (whole, *node.args[1:]), node.kwargs)
    else:
        hidden = w.call(node.target, _whole(w, hidden, source), *node.args[1:], **node.kwargs)
    if rest is not None:
        rest = w.call(node.target, _whole(w, rest, source), *node.args[1:], **node.kwargs)
    return Apart(rest, hidden)


def _sum(w: MaskWriter, first: Apart, second: Apart) -> Apart | None:
    if first.hidden is None and second.hidden is None:
        return None
    added = [each.rest for each in (first, second) if each.rest is not None]
    rest = w.call(aten.add.Tensor, *added) if len(added) == 2 else next(iter(added), None)
    if first.hidden is None:
        return Apart(rest, second.hidden)
    made = Apart(rest, first.hidden)
    return made if second.hidden is None else _more(w, made, second.hidden)


def _difference(w: MaskWriter, first: Apart, node: Node) -> Apart | None:
    second = _negative(w, node)
    if second.hidden is not None:
        return _sum(w, first, second)
    if first.rest is None or first.hidden is None:
        return None
    return Apart(w.call(aten.sub.Tensor, first.rest, node), first.hidden)


def _negative(w: MaskWriter, node: Node) -> Apart:
    """Return what is hidden where ``node`` is subtracted."""
    held = _value(w, node)
    if held is not None:
        return _constant(w, node, -held)
    if node.target is aten.mul.Tensor and isinstance(node.args[1], (int, float)):
        first = _operand(node, 0)
        if _is_truth(first) and _is_low(-node.args[1], HIDDEN):
            return Apart(None, _as_truth(w, first))
    return Apart(node)


def _constant(w: MaskWriter, node: Node, held: Tensor) -> Apart:
    if not held.is_floating_point() or not bool((low := held <= LOW).any()):
        return Apart(node)
    rest = held.masked_fill(low, 0.0)
    if not bool(rest.any()):
        return Apart(None, low)
    return Apart(add_constant(w.model, "bias", rest, node.meta["val"]), low)


def _chosen(w: MaskWriter, node: Node) -> Apart:
    """Of ``where(m, x, low)`` or ``where(m, low, x)``."""
    truth = _truth(w, _operand(node, 0))
    for i in (1, 2):
        held, value = node.args[i], node.args[3 - i]
        low = _value(w, held) if isinstance(held, Node) else torch.tensor(held)
        if isinstance(value, Node) and low is not None and bool((low <= LOW).all()):
            hides = truth if i == 1 else _turned(w, truth)
            return _more(w, _apart(w, value), hides)
    return Apart(node)


def _more(w: MaskWriter, found: Apart, hidden: Node | Tensor) -> Apart:
    """Return a value of which more is hidden."""
    before = found.hidden
    if before is None:
        return Apart(found.rest, hidden)
    if isinstance(before, Tensor) and isinstance(hidden, Tensor):
        return Apart(found.rest, before | hidden)
    like = w.node.meta["val"]
    both = (
        each
        if isinstance(each, Node)
        else w.call(aten.gt.Scalar, add_constant(w.model, "hidden", each.float(), like), 0.0)
        for each in (before, hidden)
    )
    return Apart(found.rest, w.call(aten.logical_or.default, *both))


def _whole(w: MaskWriter, x: Node, like: Node) -> Node:
    """Return a value in the shape of what it was a part of."""
    shape = like.meta["val"].shape
    return x if x.meta["val"].shape == shape else w.call(aten.expand.default, x, list(shape))


def _operand(node: Node, index: int) -> Node:
    found = node.args[index]
    assert isinstance(found, Node)
    return found


def _truth(w: MaskWriter, node: Node) -> Node | Tensor:
    held = _value(w, node)
    return node if held is None else held


def _turned(w: MaskWriter, truth: Node | Tensor) -> Node | Tensor:
    if isinstance(truth, Tensor):
        return truth.logical_not()
    return w.call(aten.logical_not.default, truth)


def _is_low(number: object, bound: float = LOW) -> bool:
    return isinstance(number, (int, float)) and number <= bound


def _is_truth(node: Node) -> bool:
    """Tell whether floats are 0 or 1 as far as can be seen: ``1 - mask``, a mask that is given."""
    if node.target is aten.rsub.Scalar:
        return bool(node.args[1] == 1) and _is_truth(_operand(node, 0))
    if node.target in MOVES:
        return _is_truth(_operand(node, 0))
    if node.target is aten.to.dtype:
        return not _operand(node, 0).meta["val"].is_floating_point()
    return node.op == "placeholder"


def _value(w: MaskWriter, node: Node) -> Tensor | None:
    """Return what ``node`` is where it depends on constants alone."""
    if node not in w.constants or node.meta["val"].numel() > MOST_NUMBERS:
        return None
    return computed(w.model, node)


def _as_truth(w: MaskWriter, node: Node) -> Node:
    """Return where floats that are 0 or 1 are 1."""
    source = node.args[0] if node.args else None
    if node.target is aten.rsub.Scalar:
        return w.call(aten.logical_not.default, _as_truth(w, _operand(node, 0)))
    if node.target in MOVES:
        return w.call(node.target, _as_truth(w, _operand(node, 0)), *node.args[1:], **node.kwargs)
    if isinstance(source, Node) and source.meta["val"].dtype == torch.bool:
        return source
    return w.call(aten.gt.Scalar, node, 0.0)


def _computed(target: Any, args: tuple[Any, ...], kwargs: Any) -> Tensor:
    with torch.no_grad():
        made: Tensor = target(*args, **kwargs)
    return made


ROWS = {
    aten.baddbmm.default: onto(aten.bmm.default),
    aten.scaled_dot_product_attention.default: _attention,
    aten.softmax.int: _masked,
}
