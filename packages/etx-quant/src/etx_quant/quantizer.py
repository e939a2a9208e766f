# SPDX-License-Identifier: BSD-3-Clause
"""Quantizers of the pt2e flow over the rows of ``etx_quant.rows``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import Quantizer

from etx_quant.annotate import annotate_function, annotate_node, is_static, move_forward
from etx_quant.config import QuantizationConfig, get_symmetric_quantization_config
from etx_quant.constants import constants
from etx_quant.forms import rewrite_forms
from etx_quant.functions import written_functions
from etx_quant.norms import norms_as_layers
from etx_quant.rows import ROWS, Moved, Row

__all__ = ["Int8Quantizer", "XNNPACKQuantizer", "module_names"]

Config: TypeAlias = QuantizationConfig | None


class XNNPACKQuantizer(Quantizer):  # type: ignore[misc]
    """Annotates operators that XNNPACK has in int8, with the configuration that is set for them.

    Of several configurations the one of the innermost named module counts, then that of a module
    type, then that of the operator, then the global one. A configuration of None leaves in float.
    """

    rows: ClassVar[dict[object, Row]] = {
        **{op: row for op, row in ROWS.items() if row.is_xnnpack},
        torch.ops.aten.cat.default: Moved(of_inputs=True),  # as ExecuTorch's quantizer of this name
    }
    norms_alone: ClassVar[bool] = False
    """Whether norms without a neighbour that has a row are layers, too."""

    def __init__(self) -> None:
        super().__init__()
        self._default: Config = None
        self._by_name: dict[str, Config] = {}
        self._by_type: dict[str, Config] = {}
        self._by_operator: dict[object, Config] = {}
        self._filter: Callable[[Node], bool] | None = None

    def set_global(self, quantization_config: Config) -> XNNPACKQuantizer:
        """Use this configuration wherever nothing more special is set."""
        self._default = quantization_config
        return self

    def set_module_name(self, module_name: str, quantization_config: Config) -> XNNPACKQuantizer:
        """Use this configuration inside of the submodule of that name, e.g. ``encoder.0``."""
        self._by_name[module_name] = quantization_config
        return self

    def set_module_type(
        self, module_type: Callable[..., Any], quantization_config: Config
    ) -> XNNPACKQuantizer:
        """Use this configuration inside of modules of that type."""
        self._by_type[_type_name(module_type)] = quantization_config
        return self

    def set_operator_type(
        self, operator_type: Any, quantization_config: Config
    ) -> XNNPACKQuantizer:
        """Use this configuration for an operator: ``torch.ops.aten.linear`` or an overload."""
        self._by_operator[operator_type] = quantization_config
        return self

    def set_filter_function(self, filter_fn: Callable[[Node], bool]) -> XNNPACKQuantizer:
        """Leave the operators in float for which ``filter_fn`` returns False."""
        self._filter = filter_fn
        return self

    @property
    def names(self) -> list[str]:
        """Return the names of modules that have a configuration."""
        return list(self._by_name)

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Make norms layers where no layer could take them in, and operators such as have rows."""
        norms_as_layers(model, self._takes_norm, self.norms_alone)
        rewrite_forms(model, self._is_rewritten)
        return model

    def _is_rewritten(self, node: Node) -> bool:
        """Tell whether an operator is quantized, and has no parameter that is trained."""
        config = self._config(node)
        if config is None or not is_static(config.input_activation):
            return False
        return not (config.is_qat and any(n.op == "get_attr" for n in node.all_input_nodes))

    def _takes_norm(self, node: Node) -> bool:
        """Tell whether a norm is quantized: each channel of its weight has a scale."""
        config = self._config(node)
        if config is None or config.is_qat or not is_static(config.input_activation):
            return False
        return config.weight is not None and config.weight.ch_axis is not None

    def annotate(self, model: GraphModule) -> GraphModule:
        """Attach annotations to the nodes of the graph."""
        nodes = list(model.graph.nodes)
        written = written_functions(model.graph) if self.rows is ROWS else []
        functions = {inner[0]: (source, inner) for source, inner in written}
        for node in nodes:
            if node in functions:
                self._annotate_function(*functions[node], model)
            if (row := self.rows.get(node.target)) and (config := self._config(node)):
                annotate_node(node, row, config, model)
        held = constants(model)  # Conversion computes what is quantized of them, once.
        for node in reversed([node for node in nodes if node not in held]):
            if (row := self.rows.get(node.target)) and (config := self._config(node)):
                move_forward(node, row, config)
        return model

    def _annotate_function(self, source: Node, inner: list[Node], model: GraphModule) -> None:
        """Annotate what one configuration is for."""
        config = self._config(inner[-1])
        if config is not None and all(self._config(node) is config for node in inner):
            annotate_function(source, inner, config, model)

    def validate(self, model: GraphModule) -> None:
        """Accept every annotated model."""

    def _config(self, node: Node) -> Config:
        """Return the most special configuration of ``node``."""
        if self._filter is not None and not self._filter(node):
            return None
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        for name in reversed(module_names(node)):
            if name in self._by_name:
                return self._by_name[name]
        for _, kind in reversed(stack):
            if _type_name(kind) in self._by_type:
                return self._by_type[_type_name(kind)]
        for target in (node.target, getattr(node.target, "overloadpacket", None)):
            if target in self._by_operator:
                return self._by_operator[target]
        return self._default


class Int8Quantizer(XNNPACKQuantizer):
    """Annotates all operators of ``ROWS``, for static int8 per channel unless told otherwise."""

    rows = ROWS

    def __init__(self) -> None:
        super().__init__()
        self.set_global(get_symmetric_quantization_config(is_per_channel=True))


def module_names(node: Node) -> list[str]:
    """Return the paths of the modules around ``node``, the outermost first."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = (path for path, _ in stack.values())
    return [p.removeprefix("L['self'].").replace("']", "").replace("['", "") for p in paths]


def _type_name(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    return f"{kind.__module__}.{kind.__qualname__}"
