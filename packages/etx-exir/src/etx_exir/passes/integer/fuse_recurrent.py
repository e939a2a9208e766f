# SPDX-License-Identifier: BSD-3-Clause
"""``lstm(x, dequantize(w), ...)`` -> ``weight_only_lstm(x, w, ...)``, ``gru`` and ``rnn`` too."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.integer.layout import Layouts
from etx_exir.integer.linear_weights import Matrix, matrix_of
from etx_exir.integer.recurrent import SCALES, WEIGHT_ONLY
from etx_exir.ir.packed_weights import pack_groups
from etx_exir.ir.recurrent import LSTM
from etx_exir.passes.base import NodePass


class FuseRecurrent(NodePass):
    """Read the quantized weights of a recurrent layer where they lie, at each of its steps."""

    targets = tuple(WEIGHT_ONLY)

    def rewrite(self, node: Node, graph: Graph) -> Node | tuple[Node, ...] | str | None:
        op: Any = node.target
        names = [argument.name for argument in op._schema.arguments]
        given = dict(zip(names, node.args, strict=True))
        matrices = {name: given[name] for name in SCALES if given.get(name) is not None}
        if all(self.constants.get(matrix) is not None for matrix in matrices.values()):
            return None
        found = {name: matrix_of(matrix, self.constants) for name, matrix in matrices.items()}
        for name, matrix in found.items():
            if isinstance(matrix, str):
                return f"{name}: {matrix}"
        x: Any = node.args[0]
        if x.meta["val"].dtype is not torch.float32:
            return f"the layer is {x.meta['val'].dtype}, not float32"
        layouts, args = Layouts(self, graph), list[Any]()
        for name, value in given.items():
            packed = found.get(name)
            if isinstance(packed, Matrix):
                args.append(layouts.constant(packed.packed(), f"{packed.name}_packed"))
                args.append(layouts.constant(pack_groups(packed.scales), f"{packed.name}_scales"))
            else:
                args += [value, None] if name in SCALES else [value]
        call = layouts.call(WEIGHT_ONLY[op], *args)
        if op is not LSTM:
            return call
        return tuple(layouts.call(operator.getitem, call, i) for i in range(2))
