# SPDX-License-Identifier: BSD-3-Clause
"""``transpose(conv2d_nhwc(transpose(x)))`` -> ``conv2d(x)``: sizes stay (N, C, H, W), and the
memory has channels last.
"""

from __future__ import annotations

from typing import Any

import torch
from etx_exir.ir.constants import fake_mode_of
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.dim_order import CLONE, dim_order_of_format
from etx_exir.passes.base import Pass, propagate
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Graph, Node

from etx_backend_arm.cortex_m import operators as ops
from etx_backend_arm.cortex_m.moves import PERMUTE, VIEW, is_channels_last

LAST, FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
MOVES = (ops.TRANSPOSE, PERMUTE)
CHANNELS_LAST = list(dim_order_of_format(torch.channels_last, 4))
ELEMENTWISE = frozenset(
    {
        ops.ACTIVATION,
        ops.ADD,
        ops.DEQUANTIZE,
        ops.DIV,
        ops.MAXIMUM,
        ops.MINIMUM,
        ops.MUL,
        ops.QUANTIZE,
    }
)


class FollowInputs(Pass):
    """Give results of kernels that keep an order of memory that of their inputs.

    An input of the model with channels last has integers in rows behind it.
    """

    def apply(self, program: ExportedProgram) -> bool:
        """Compute the values of all graphs again."""
        mode, changed = fake_mode_of(program), False
        for module in graph_modules(program.graph_module):
            for node in module.graph.nodes:
                if node.target in ELEMENTWISE:
                    before = node.meta["val"].stride()
                    propagate(node, mode)
                    changed |= node.meta["val"].stride() != before
        return changed


class ToDimOrders(Pass):
    """Make operators on (N, H, W, C) those of the family that ExecuTorch makes by default.

    What reads images otherwise, and what is not between two of them, has its copies as before.
    """

    def apply(self, program: ExportedProgram) -> bool:
        """Change all graphs."""
        self.mode = fake_mode_of(program)
        given = program.graph_signature.user_inputs
        inputs = [n for n in program.graph.find_nodes(op="placeholder") if n.name in given]
        self.keeps = any(_rank(n) == 4 and is_channels_last(n.meta["val"]) for n in inputs)
        changed = [self._change(module.graph) for module in graph_modules(program.graph_module)]
        return any(changed)

    def _change(self, graph: Graph) -> bool:
        self.made: dict[Node, Node] = {}
        for node in list(graph.nodes):
            with graph.inserting_before(node):
                new = self._counterpart(graph, node)
            if new is not None:
                kept = {key: item for key, item in node.meta.items() if key != "val"}
                new.meta = kept | new.meta
                self.made[node] = new
        for node, new in self.made.items():
            for user in [user for user in node.users if user not in self.made]:
                self._read(graph, node, new, user)
        for node in reversed(self.made):
            _erase(graph, node)
        return bool(self.made)

    def _call(self, graph: Graph, target: Any, *args: Any, **kwargs: Any) -> Node:
        node = graph.call_function(target, args, kwargs)
        propagate(node, self.mode)
        return node

    def _counterpart(self, graph: Graph, node: Node) -> Node | None:
        """Return what computes the image of `node` as (N, C, H, W), None where it is not one."""
        args: list[Any] = list(node.args)
        if node.target in ELEMENTWISE or node.target is ops.PAD:
            images = [arg for arg in args if isinstance(arg, Node) and _rank(arg) == 4]
            sizes = {arg.meta["val"].shape for arg in images}
            if _rank(node) != 4 or len(sizes) != 1 or not all(map(self._is_image, images)):
                return None
            if not any(arg in self.made for arg in images) and not _begins(node):
                return None
            if node.target is ops.PAD:
                args[1:3] = [_of_image(images[0], side) for side in args[1:3]]
            moved = [self._image(graph, arg) if arg in images else arg for arg in args]
            return self._call(graph, node.target, *moved)
        if node.target not in ops.BY_DIM_ORDER:
            return None
        x: Any = args[0]
        if (whole := self._whole(node)) is not None:
            x, args[1] = whole
        if not self._is_image(x):
            return None
        image = self._image(graph, x)
        return self._call(graph, ops.BY_DIM_ORDER[node.target], image, *args[1:])

    def _whole(self, node: Node) -> tuple[Node, list[int]] | None:
        """Return the image of a mean, whose points `node` has in one column, and its window."""
        x: Any = node.args[0]
        if node.target is not ops.AVG_POOL2D or x.target is not VIEW or _rank(x.args[0]) != 4:
            return None
        count, height, width, channels = x.args[0].meta["val"].shape
        points = [height * width, 1]
        is_column = list(x.meta["val"].shape) == [count, *points, channels]
        if not is_column or list(node.args[1]) != points or any(node.args[3]):  # type: ignore[arg-type]
            return None
        return x.args[0], [height, width]

    def _is_image(self, node: Node) -> bool:
        return node in self.made or _moves(node, LAST)

    def _image(self, graph: Graph, node: Node) -> Node:
        """Return an image (N, H, W, C) as (N, C, H, W) with channels last in memory."""
        if node in self.made:
            return self.made[node]
        source: Any = node.args[0]
        if source.meta["val"].is_contiguous(memory_format=torch.channels_last):
            return source  # type: ignore[no-any-return]
        return self._call(graph, CLONE, source, dim_order=CHANNELS_LAST)

    def _read(self, graph: Graph, node: Node, new: Node, user: Node) -> None:
        """Let `user` read `new` instead of `node`."""
        with graph.inserting_before(user):
            if not _moves(user, FIRST):
                move = ops.TRANSPOSE if new.meta["val"].dtype == torch.int8 else PERMUTE
                user.replace_input_with(node, self._call(graph, move, new, LAST))
                return
            if self.keeps and all(reader.target is ops.DEQUANTIZE for reader in user.users):
                rows = new
            else:
                rows = self._call(graph, CLONE, new, dim_order=[0, 1, 2, 3])
        user.replace_all_uses_with(rows)
        graph.erase_node(user)


def _begins(node: Node) -> bool:
    """Tell whether a padding is that of windows alone."""
    return node.target is ops.PAD and all(user.target in ops.BY_DIM_ORDER for user in node.users)


def _moves(node: Node, order: list[int]) -> bool:
    """Tell whether `node` reorders the dimensions of an image so, if only by calling them so."""
    if node.target in MOVES:
        return list(node.args[1]) == order  # type: ignore[arg-type]
    if node.target is not VIEW or _rank(node.args[0]) != 4:
        return False
    sizes: Any = node.args[0].meta["val"].shape  # type: ignore[union-attr]
    channels = sizes[1] if order == LAST else sizes[3]
    points = sizes[2] * sizes[3] if order == LAST else sizes[1] * sizes[2]
    is_moved = list(node.meta["val"].shape) == [sizes[i] for i in order]
    return is_moved and (channels == 1 or points == 1)


def _rank(node: Any) -> int:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value.dim() if isinstance(value, Tensor) else -1


def _of_image(image: Node, side: Any) -> list[int]:
    """Return widths of `pad` in the order (N, H, W, C), whatever the sizes let them stand in."""
    sizes = image.meta["val"].shape
    if sizes[1] != 1 and (sizes[2] != 1 or sizes[3] != 1):
        return list(side)
    first, second, third, fourth = side
    return [first, fourth, second, third]


def _erase(graph: Graph, node: Node) -> None:
    """Erase `node`, and the moves that it alone read."""
    read = node.all_input_nodes
    graph.erase_node(node)
    for source in read:
        if not source.users and (source.target in MOVES or source.target is VIEW):
            graph.erase_node(source)
